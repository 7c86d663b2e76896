package main

import (
	"fmt"
	"sync"
	"syscall"
)

const (
	blockingGoroutines = 64
	blockingCalls      = 50
	blockingCallNs     = 2000000
)

func blockingCaller(calls *uint64, wg *sync.WaitGroup) {
	for i := 0; i < blockingCalls; i++ {
		// Go's preemption signal does interrupt it: then it is made once more.
		t := syscall.Timespec{Nsec: blockingCallNs}
		for syscall.Nanosleep(&t, &t) == syscall.EINTR {
		}
		*calls++
	}
	wg.Done()
}

func blockingRound() (sum uint64) {
	var slot [blockingGoroutines]struct {
		calls uint64
		_     [56]byte
	}
	var wg sync.WaitGroup
	wg.Add(blockingGoroutines)
	for i := range slot {
		go blockingCaller(&slot[i].calls, &wg)
	}
	wg.Wait()
	for i := range slot {
		sum += slot[i].calls
	}
	return sum
}

// All of Go's calls are announced.
func blocking() {
	ms, check := measure(blockingRound, 1e6)
	report("blocking.announced", ms, "ms", fmt.Sprint(check))
}
