package main

import (
	"fmt"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

var never = make(chan int)
var held sync.Mutex
var busy sync.WaitGroup

func main() {
	held.Lock()
	busy.Add(1)
	go func() { <-never }()
	time.Sleep(5 * time.Millisecond)
	never <- 0 // that one ends
	go func() { never <- 0 }()
	go func() {
		var null chan int
		select {
		case <-make(chan int):
		case null <- 0:
		}
	}()
	go func() { time.Sleep(100 * time.Second) }()
	go func() { held.Lock() }()
	go func() { busy.Wait() }()
	time.Sleep(20 * time.Millisecond)

	buf := make([]byte, 1<<16)
	buf = buf[:runtime.Stack(buf, true)]
	var states []string
	for _, m := range regexp.MustCompile(`(?m)^goroutine \d+ \[(.*?)\]`).FindAllSubmatch(buf, -1) {
		// Before Go 1.25 a wait for a wait group has this name.
		states = append(states, strings.Replace(string(m[1]), "semacquire", "sync.WaitGroup.Wait", 1))
	}
	sort.Strings(states)
	for _, s := range states {
		fmt.Println(s)
	}
}
