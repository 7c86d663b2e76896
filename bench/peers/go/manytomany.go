package main

import (
	"fmt"
	"sync"
)

const (
	manyCapacity  = 128
	manyProducers = 8
	manyConsumers = 8
	manyValues    = 10000 // per producer and round
)

func manytomanyRound() (sum uint64) {
	c := make(chan uint64, manyCapacity)
	var producers, consumers sync.WaitGroup
	var total [manyConsumers]uint64
	producers.Add(manyProducers)
	consumers.Add(manyConsumers)
	for i := 0; i < manyConsumers; i++ {
		go func(total *uint64) {
			sum := uint64(0)
			for v := range c {
				sum += v
			}
			*total = sum
			consumers.Done()
		}(&total[i])
	}
	for i := 0; i < manyProducers; i++ {
		go func() {
			for i := uint64(1); i <= manyValues; i++ {
				c <- i
			}
			producers.Done()
		}()
	}
	producers.Wait()
	close(c)
	consumers.Wait()
	for _, t := range total {
		sum += t
	}
	return sum
}

func manytomany() {
	ns, check := measure(manytomanyRound, manyProducers*manyValues)
	report("manytomany", ns, "ns", fmt.Sprint(check))
}
