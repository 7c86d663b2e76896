package main

import (
	"fmt"
	"sync"
)

func print(kind string, first int, mine, theirs chan int, wg *sync.WaitGroup) {
	for n := first; n <= 10; n += 2 {
		<-mine
		fmt.Println(kind, n)
		if n < 10 {
			theirs <- n
		}
	}
	wg.Done()
}

func main() {
	odd, even := make(chan int), make(chan int)
	var wg sync.WaitGroup
	wg.Add(2)
	go print("odd", 1, odd, even, &wg)
	go print("even", 2, even, odd, &wg)
	odd <- 0 // the first turn
	wg.Wait()
}
