package main

import (
	"fmt"
	"sync"
)

const (
	poolWorkers = 8
	poolQueue   = 128
	poolTasks   = 50000 // per round
)

type poolTask struct {
	in, out uint64
}

// Stays for all rounds, as the array in C does: no garbage of ours.
var poolTaskArray [poolTasks]poolTask

// The usual worker pool: workers that range over a channel of work. Cheaper
// than a channel of closures, which would be closer to a pool of functions.
func poolRound() (sum uint64) {
	queue := make(chan *poolTask, poolQueue)
	var workers sync.WaitGroup
	workers.Add(poolWorkers)
	for i := 0; i < poolWorkers; i++ {
		go func() {
			for t := range queue {
				t.out = t.in * t.in
			}
			workers.Done()
		}()
	}
	tasks := &poolTaskArray
	for i := range tasks {
		tasks[i] = poolTask{in: uint64(i)}
		queue <- &tasks[i]
	}
	close(queue)
	workers.Wait()
	for i := range tasks {
		sum += tasks[i].out
	}
	return sum
}

func pool() {
	ns, check := measure(poolRound, poolTasks)
	report("pool", ns, "ns", fmt.Sprint(check))
}
