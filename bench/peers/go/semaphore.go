package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	semaGoroutines = 8
	semaUnits      = 4
	semaTurns      = 2500 // per goroutine and round
)

// A semaphore in Go is a buffered channel.
func semaphoreRound() uint64 {
	sema := make(chan struct{}, semaUnits)
	var inside struct {
		_ [56]byte
		n atomic.Int64
		_ [56]byte
	}
	var turns atomic.Uint64
	var wg sync.WaitGroup
	wg.Add(semaGoroutines)
	for i := 0; i < semaGoroutines; i++ {
		go func() {
			for i := 0; i < semaTurns; i++ {
				sema <- struct{}{}
				if inside.n.Add(1) > semaUnits {
					fail("more inside than there are units")
				}
				runtime.Gosched()
				inside.n.Add(-1)
				<-sema
			}
			turns.Add(semaTurns)
			wg.Done()
		}()
	}
	wg.Wait()
	return turns.Load()
}

func semaphore() {
	ns, check := measure(semaphoreRound, semaGoroutines*semaTurns)
	report("semaphore", ns, "ns", fmt.Sprint(check))
}
