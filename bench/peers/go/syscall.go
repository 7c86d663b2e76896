package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

const (
	syscallCalls   = 200  // per batch
	syscallBatches = 2000 // per round
)

func bareBatch() time.Duration {
	start := time.Now()
	for i := 0; i < syscallCalls; i++ {
		syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	return time.Since(start)
}

func announcedBatch() time.Duration {
	start := time.Now()
	for i := 0; i < syscallCalls; i++ {
		syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	return time.Since(start)
}

func syscallMedian(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / syscallCalls
}

func syscallWorkload() {
	var bare, announced, cost [syscallBatches]time.Duration
	for i := range bare {
		bare[i] = bareBatch()
		announced[i] = announcedBatch()
		cost[i] = announced[i] - bare[i]
	}
	check := fmt.Sprint(syscallCalls)
	report("syscall.bare", syscallMedian(bare[:]), "ns", check)
	report("syscall.announced", syscallMedian(announced[:]), "ns", check)
	report("syscall.cost", syscallMedian(cost[:]), "ns", check)
}
