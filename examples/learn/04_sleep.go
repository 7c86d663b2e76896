package main

import (
	"fmt"
	"time"
)

func sleeper(done chan int) {
	time.Sleep(30 * time.Millisecond)
	fmt.Println("sleeper: awake")
	close(done)
}

func main() {
	done := make(chan int)
	go sleeper(done)
	fmt.Println("main: goes on")
	time.Sleep(5 * time.Millisecond)
	fmt.Println("main: waits")
	<-done
	fmt.Println("main: done")
}
