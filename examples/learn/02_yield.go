package main

import (
	"fmt"
	"runtime"
	"sync"
)

func say(word string, wg *sync.WaitGroup) {
	for i := 0; i < 3; i++ {
		fmt.Println(word)
		runtime.Gosched()
	}
	wg.Done()
}

func main() {
	runtime.GOMAXPROCS(1)
	var wg sync.WaitGroup
	wg.Add(2)
	go say("pong", &wg)
	go say("ping", &wg) // the newest goroutine goes first
	wg.Wait()
}
