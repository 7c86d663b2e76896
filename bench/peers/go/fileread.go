package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
)

const (
	filereadReaders = 1000
	filereadReads   = 20 // of each, per round
	filereadBlock   = 4096
	filereadBlocks  = 1 << 18

	// As many blocks as there are, before it is measured: see fileread.h.
	filereadWarmRounds = filereadBlocks/(filereadReaders*filereadReads) + 1
)

func filereadPath() string {
	dir := os.Getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	return dir + "/goro-bench-1GiB"
}

func filereadMake(path string) {
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0600)
	if err != nil {
		fail(err.Error())
	}
	words := make([]byte, 1<<20)
	for at := uint64(0); at < filereadBlocks*filereadBlock; at += uint64(len(words)) {
		for i := 0; i < len(words); i += 8 {
			binary.LittleEndian.PutUint64(words[i:], (at+uint64(i))/8)
		}
		if _, err := f.Write(words); err != nil {
			fail(err.Error())
		}
	}
	f.Close()
	if err := os.Rename(part, path); err != nil {
		fail(err.Error())
	}
}

func filereadOpen() *os.File {
	f, err := os.Open(filereadPath())
	if err != nil {
		filereadMake(filereadPath())
		f, err = os.Open(filereadPath())
	}
	if err != nil {
		fail(err.Error())
	}
	if n, err := io.Copy(io.Discard, f); err != nil || n != filereadBlocks*filereadBlock {
		fail("cannot read the file")
	}
	return f
}

type filereadReader struct {
	random uint64
	right  uint64
	_      [48]byte // a cache line each
}

func (r *filereadReader) read(f *os.File, wg *sync.WaitGroup) {
	block := make([]byte, filereadBlock)
	x := r.random
	for i := 0; i < filereadReads; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		at := x % filereadBlocks
		if _, err := f.ReadAt(block, int64(at*filereadBlock)); err == nil &&
			binary.LittleEndian.Uint64(block) == at*(filereadBlock/8) {
			r.right++
		}
	}
	r.random = x
	wg.Done()
}

func fileread() {
	f := filereadOpen()
	readers := make([]filereadReader, filereadReaders)
	for i := range readers {
		readers[i].random = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	round := func() (right uint64) {
		var wg sync.WaitGroup
		wg.Add(len(readers))
		for i := range readers {
			readers[i].right = 0
			go readers[i].read(f, &wg)
		}
		wg.Wait()
		for i := range readers {
			right += readers[i].right
		}
		return right
	}
	for i := 0; i < filereadWarmRounds; i++ {
		round()
	}
	ns, check := measure(round, filereadReaders*filereadReads)
	report("fileread", ns, "ns", fmt.Sprintf("%d right", check))
}
