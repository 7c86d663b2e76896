package main

import (
	"fmt"
	"time"
)

func count(c chan int) {
	for i := 1; i <= 2; i++ {
		c <- i
	}
	close(c)
}

func main() {
	a, b := make(chan int), make(chan int)
	select {
	case <-a:
	default:
		fmt.Println("nothing on a")
	}
	select {
	case <-a:
	case <-time.After(2 * time.Millisecond):
		fmt.Println("nothing on a for 2 ms")
	}
	go count(a)
	go count(b)
	sum := 0
	for fromA, fromB := a, b; fromA != nil || fromB != nil; {
		select {
		case v, ok := <-fromA:
			if !ok {
				fromA = nil
			}
			sum += v
		case v, ok := <-fromB:
			if !ok {
				fromB = nil
			}
			sum += v
		}
	}
	fmt.Println("sum of both:", sum)
}
