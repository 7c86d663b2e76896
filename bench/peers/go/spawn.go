package main

import (
	"fmt"
	"sync"
)

const (
	batch   = 100
	batches = 100 // per round
)

var slots [batch]paddedCount

func work(slot *paddedCount, wg *sync.WaitGroup) {
	slot.n++
	wg.Done()
}

func runBatch() {
	var wg sync.WaitGroup
	wg.Add(batch)
	for i := range slots {
		go work(&slots[i], &wg)
	}
	wg.Wait()
}

func spawnRound() (sum uint64) {
	clear(slots[:])
	for i := 0; i < batches; i++ {
		runBatch()
	}
	for i := range slots {
		sum += slots[i].n * uint64(i+1)
	}
	return sum
}

func spawn() {
	ns, check := measure(spawnRound, batch*batches)
	report("spawn", ns, "ns", fmt.Sprint(check))
}
