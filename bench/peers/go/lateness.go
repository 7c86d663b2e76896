package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

const (
	latenessSleeps = 200
	latenessHogs   = 2 // a processor
	latenessSleep  = time.Millisecond
)

func latenessHog() {
	for {
	}
}

func latenessReport(what string, d []time.Duration) {
	slices.Sort(d)
	us := func(i int) float64 { return float64(d[i].Nanoseconds()) / 1e3 }
	report("lateness."+what+".p50", us(latenessSleeps/2), "us", fmt.Sprint(latenessSleeps))
	report("lateness."+what+".p99", us(latenessSleeps*99/100), "us", fmt.Sprint(latenessSleeps))
}

func lateness() {
	late := make([]time.Duration, latenessSleeps)
	trip := make([]time.Duration, latenessSleeps)
	in, out := make(chan uint64), make(chan uint64)
	for i := 0; i < latenessHogs*runtime.GOMAXPROCS(0); i++ {
		go latenessHog()
	}
	go func() {
		for v := range in {
			out <- v
		}
	}()
	time.Sleep(20 * time.Millisecond) // until all of them run
	for i := range late {
		start := time.Now()
		time.Sleep(latenessSleep)
		late[i] = time.Since(start) - latenessSleep
		start = time.Now()
		in <- 0
		<-out
		trip[i] = time.Since(start)
	}
	latenessReport("sleep", late)
	latenessReport("chan", trip)
}
