package main

import (
	"fmt"
	"sync"
)

const (
	mutexGoroutines = 8
	mutexLocks      = 20000 // per goroutine and round
)

type lockedCounter struct {
	lock sync.Mutex
	n    uint64
}

func mutexRound(goroutines int) uint64 {
	var c lockedCounter
	var wg sync.WaitGroup
	wg.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() {
			for i := 0; i < mutexLocks; i++ {
				c.lock.Lock()
				c.n++
				c.lock.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return c.n
}

func mutex() {
	ns, check := measure(func() uint64 { return mutexRound(mutexGoroutines) },
		mutexGoroutines*mutexLocks)
	report("mutex", ns, "ns", fmt.Sprint(check))
	ns, check = measure(func() uint64 { return mutexRound(1) }, mutexLocks)
	report("mutex.alone", ns, "ns", fmt.Sprint(check))
}
