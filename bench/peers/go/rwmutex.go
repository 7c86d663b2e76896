package main

import (
	"fmt"
	"sync"
)

const (
	rwGoroutines = 8
	rwOps        = 10000 // per goroutine and round
	rwWriteEvery = 100
)

type lockedPair struct {
	lock sync.RWMutex
	a, b uint64
}

func (p *lockedPair) write() {
	p.lock.Lock()
	p.a++
	p.b++
	p.lock.Unlock()
}

func (p *lockedPair) read() bool {
	p.lock.RLock()
	same := p.a == p.b
	p.lock.RUnlock()
	return same
}

func rwmutexRound() uint64 {
	var p lockedPair
	var wg sync.WaitGroup
	wg.Add(rwGoroutines)
	for number := 0; number < rwGoroutines; number++ {
		go func() {
			for i := 0; i < rwOps; i++ {
				if (i+number)%rwWriteEvery == 0 {
					p.write()
				} else if !p.read() {
					fail("a reader saw half of a write")
				}
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return p.a + p.b
}

func rwmutex() {
	ns, check := measure(rwmutexRound, rwGoroutines*rwOps)
	report("rwmutex", ns, "ns", fmt.Sprint(check))
}
