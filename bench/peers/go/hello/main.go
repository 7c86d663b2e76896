// The program whose start bench/startup.c measures.
package main

import (
	"fmt"
	"runtime"
)

func main() {
	c := make(chan int)
	go func() { c <- runtime.GOMAXPROCS(0) }()
	fmt.Println("hello from", <-c)
}
