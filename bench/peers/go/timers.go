package main

import (
	"fmt"
	"sync"
	"time"
)

const (
	sleeperCount  = 200000
	sleeperLead   = 300 * time.Millisecond // for all to fall asleep
	sleeperSpread = time.Second
	sleeperStride = 7919 // a prime: in no order

	otherTimers  = 10000
	timerChanges = 10000 // per round

	tickerCount  = 1000
	tickerTicks  = 50
	tickerPeriod = 10 * time.Millisecond
)

func sleepers() {
	var ready, gate, ended sync.WaitGroup
	var firstEnd time.Time
	late := make([]int64, sleeperCount)
	ready.Add(sleeperCount)
	gate.Add(1)
	ended.Add(sleeperCount)
	for number := 0; number < sleeperCount; number++ {
		go func() {
			place := number * sleeperStride % sleeperCount
			ready.Done()
			gate.Wait()
			end := firstEnd.Add(time.Duration(place) * (sleeperSpread / sleeperCount))
			time.Sleep(time.Until(end))
			late[place] = time.Since(end).Nanoseconds()
			ended.Done()
		}()
	}
	ready.Wait()
	used := cpu()
	firstEnd = time.Now().Add(sleeperLead)
	gate.Done()
	ended.Wait()
	used = cpu() - used
	early := 0
	for _, ns := range late {
		if ns < 0 {
			early++
		}
	}
	check := fmt.Sprintf("%d slept, %d early", sleeperCount, early)
	report("timers.sleep.cpu", float64(used)/sleeperCount, "ns", check)
	reportLatency("timers.sleep", late, check)
}

func timeout(i int) time.Duration {
	return time.Second * time.Duration(60+i%64)
}

func timerStopRound() (inTime uint64) {
	for i := 0; i < timerChanges; i++ {
		t := time.NewTimer(timeout(i))
		if t.Stop() {
			inTime++
		}
	}
	return inTime
}

func timerResetRound() (inTime uint64) {
	t := time.NewTimer(timeout(0))
	for i := 0; i < timerChanges; i++ {
		if t.Reset(timeout(i)) {
			inTime++
		}
	}
	t.Stop()
	return inTime
}

// The other timers have functions: those with channels that nobody waits on
// would not be in Go's heap at all.
func timerChurn() {
	var others [otherTimers]*time.Timer
	for i := range others {
		others[i] = time.AfterFunc(timeout(i), func() {})
	}
	ns, check := measure(timerStopRound, timerChanges)
	report("timers.stop", ns, "ns", fmt.Sprint(check))
	ns, check = measure(timerResetRound, timerChanges)
	report("timers.reset", ns, "ns", fmt.Sprint(check))
	for _, t := range others {
		t.Stop()
	}
}

func tickers() {
	slot := make([]paddedCount, tickerCount)
	var wg sync.WaitGroup
	used := cpu()
	wg.Add(tickerCount)
	for i := range slot {
		go func() {
			t := time.NewTicker(tickerPeriod)
			for range tickerTicks {
				<-t.C
				slot[i].n++
			}
			t.Stop()
			wg.Done()
		}()
	}
	wg.Wait()
	used = cpu() - used
	sum := uint64(0)
	for i := range slot {
		sum += slot[i].n
	}
	report("timers.tick", float64(used)/(tickerCount*tickerTicks), "ns", fmt.Sprint(sum))
}

func timers() {
	sleepers()
	timerChurn()
	tickers()
}
