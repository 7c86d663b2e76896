package main

import (
	"sync"
	"time"
)

const (
	idleWaiters = 1000
	idleSeconds = 4 // one alone varies by a half
	idleSleeps  = 200
)

func slept(start time.Time, d time.Duration) string {
	if time.Since(start) >= d {
		return "slept"
	}
	return "woke early"
}

func idleSecond() {
	time.Sleep(20 * time.Millisecond) // for threads that still look for work
	start, used := time.Now(), cpu()
	for range idleSeconds {
		time.Sleep(time.Second)
	}
	used = cpu() - used
	report("idle.second", float64(used)/idleSeconds/1e3, "us", slept(start, idleSeconds*time.Second))
}

func idleWake() {
	start, used := time.Now(), cpu()
	for i := 0; i < idleSleeps; i++ {
		time.Sleep(time.Millisecond)
	}
	used = cpu() - used
	report("idle.wake", float64(used)/idleSleeps/1e3, "us",
		slept(start, idleSleeps*time.Millisecond))
}

func idle() {
	c := make(chan int)
	var ended sync.WaitGroup
	ended.Add(idleWaiters)
	for i := 0; i < idleWaiters; i++ {
		go func() {
			<-c
			ended.Done()
		}()
	}
	idleSecond()
	idleWake()
	close(c)
	ended.Wait()
}
