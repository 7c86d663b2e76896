package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const count = 1000000

var (
	ready, gate, ended sync.WaitGroup
	sum                atomic.Uint64
)

func parker(number uint64) {
	ready.Done()
	gate.Wait()
	sum.Add(number)
	ended.Done()
}

func parkAll() {
	ready.Add(count)
	gate.Add(1)
	ended.Add(count)
	for i := uint64(0); i < count; i++ {
		go parker(i)
	}
	ready.Wait()
}

func releaseAll() {
	gate.Done()
	ended.Wait()
}

func memory() {
	bytes, start := memoryBytes(), time.Now()
	parkAll()
	ns := time.Since(start).Nanoseconds()
	bytes = memoryBytes() - bytes
	alive := runtime.NumGoroutine() - 1
	releaseAll()

	report("memory.bytes", float64(bytes)/count, "B",
		fmt.Sprintf("%d alive, sum %d", alive, sum.Load()))
	report("memory.create", float64(ns)/count, "ns", fmt.Sprintf("%d alive", alive))
}
