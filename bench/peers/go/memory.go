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
	bytesBefore        int64
	timeUsed           time.Duration
)

func parker(number uint64) {
	ready.Done()
	gate.Wait()
	sum.Add(number)
	ended.Done()
}

// park parks those from first up to, and without, last.
func park(first, last uint64) {
	start := time.Now()
	ready.Add(int(last - first))
	for i := first; i < last; i++ {
		go parker(i)
	}
	ready.Wait()
	timeUsed += time.Since(start)
}

func reportBytes(name string, count uint64) {
	bytes := memoryBytes() - bytesBefore
	report(name, float64(bytes)/float64(count), "B",
		fmt.Sprintf("%d alive", runtime.NumGoroutine()-1))
}

func releaseAll() {
	gate.Done()
	ended.Wait()
}

func memory() {
	gate.Add(1)
	ended.Add(count)
	bytesBefore = memoryBytes()
	park(0, count/100)
	reportBytes("memory.bytes.10k", count/100)
	park(count/100, count/10)
	reportBytes("memory.bytes.100k", count/10)
	park(count/10, count)
	reportBytes("memory.bytes", count)
	releaseAll()
	report("memory.create", float64(timeUsed.Nanoseconds())/count, "ns",
		fmt.Sprintf("sum %d", sum.Load()))
}
