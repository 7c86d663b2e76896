package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

var spins atomic.Int64

func hog() {
	for {
		spins.Add(1)
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	go hog()
	for i := 1; i <= 3; i++ {
		time.Sleep(10 * time.Millisecond)
		state := "has not begun"
		if spins.Load() > 0 {
			state = "runs"
		}
		fmt.Printf("tick %d, and the hog %s\n", i, state)
	}
}
