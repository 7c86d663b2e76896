package main

import (
	"fmt"
	"sync"
)

const links = 100000

func chainLink(left int, sum uint64, result *uint64, wg *sync.WaitGroup) {
	if left > 0 {
		go chainLink(left-1, sum+uint64(left), result, wg)
		return
	}
	*result = sum
	wg.Done()
}

func chainRound() (result uint64) {
	var wg sync.WaitGroup
	wg.Add(1)
	go chainLink(links, 0, &result, &wg)
	wg.Wait()
	return result
}

func chain() {
	ns, check := measure(chainRound, links+1)
	report("chain", ns, "ns", fmt.Sprint(check))
}
