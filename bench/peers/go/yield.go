package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	yields = 50000 // per goroutine and round
	turns  = 1000  // per goroutine in the proof
)

type paddedCount struct {
	n uint64
	_ [56]byte
}

func yielder(count *uint64, wg *sync.WaitGroup) {
	for i := 0; i < yields; i++ {
		runtime.Gosched()
		*count++
	}
	wg.Done()
}

func yieldRound() uint64 {
	var slot [2]paddedCount
	var wg sync.WaitGroup
	wg.Add(2)
	go yielder(&slot[0].n, &wg)
	go yielder(&slot[1].n, &wg)
	wg.Wait()
	return slot[0].n + slot[1].n
}

func handoverProof() string {
	var lastRunner, handovers atomic.Int32
	var wg sync.WaitGroup
	turnTaker := func(me int32) {
		for i := 0; i < turns; i++ {
			if lastRunner.Swap(me) != me {
				handovers.Add(1)
			}
			runtime.Gosched()
		}
		wg.Done()
	}
	wg.Add(2)
	go turnTaker(1)
	go turnTaker(2)
	wg.Wait()
	if runtime.GOMAXPROCS(0) > 1 {
		return "any order"
	}
	if handovers.Load() > 2*turns*9/10 {
		return "in turn"
	}
	return "not in turn"
}

func yield() {
	proof := handoverProof()
	ns, check := measure(yieldRound, 2*yields)
	report("yield", ns, "ns", fmt.Sprint(check, " ", proof))
}
