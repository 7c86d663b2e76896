package main

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func block(wg *sync.WaitGroup) {
	syscall.Nanosleep(&syscall.Timespec{Nsec: 100e6}, nil)
	wg.Done()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func main() {
	runtime.GOMAXPROCS(1)
	begin := time.Now()
	var wg sync.WaitGroup
	wg.Add(20)
	for i := 0; i < 20; i++ {
		go block(&wg)
	}
	computed := 0
	for time.Since(begin) < 50*time.Millisecond {
		computed++
	}
	wg.Wait()
	fmt.Println("20 calls of 100 ms took less than a second:", yes(time.Since(begin) < time.Second))
	fmt.Println("main computed meanwhile:", yes(computed > 0))
}
