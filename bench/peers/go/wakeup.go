package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

const wakeSamples = 400

func wakeFromSleep() {
	sample := make([]int64, wakeSamples)
	early := 0
	for i := range sample {
		end := time.Now().Add(time.Millisecond)
		time.Sleep(time.Millisecond)
		sample[i] = time.Since(end).Nanoseconds()
		if sample[i] < 0 {
			early++
		}
	}
	reportLatency("wakeup.sleep", sample, fmt.Sprintf("%d early", early))
}

func wakeAnother() {
	sample := make([]int64, wakeSamples)
	begin := time.Now()
	var receivedAt atomic.Int64
	c := make(chan int, 1)
	go func() {
		for range c {
			receivedAt.Store(int64(time.Since(begin)))
		}
	}()
	for i := range sample {
		time.Sleep(time.Millisecond)
		receivedAt.Store(0)
		sent := int64(time.Since(begin))
		c <- i
		for receivedAt.Load() == 0 {
		}
		sample[i] = receivedAt.Load() - sent
	}
	close(c)
	reportLatency("wakeup.other", sample, fmt.Sprintf("%d received", wakeSamples))
}

func wakeup() {
	wakeFromSleep()
	if runtime.GOMAXPROCS(0) > 1 {
		wakeAnother()
	}
}
