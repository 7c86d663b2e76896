package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

var count [2]atomic.Int64
var seen [2]atomic.Bool

func run(me int, wg *sync.WaitGroup) {
	other := count[1-me].Load()
	for !seen[0].Load() || !seen[1].Load() {
		count[me].Add(1)
		if count[1-me].Load() >= other+1000 {
			seen[me].Store(true)
		}
	}
	wg.Done()
}

func main() {
	runtime.GOMAXPROCS(2)
	var wg sync.WaitGroup
	wg.Add(2)
	go run(0, &wg)
	go run(1, &wg)
	wg.Wait()
	fmt.Println("each saw the other one count")
}
