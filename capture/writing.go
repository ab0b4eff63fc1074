package capture

import (
	"errors"
	"time"
)

// What the writing goroutine of a Recorder does.

// retryEvery is how often a file that could not be written is tried again.
const retryEvery = time.Second

// write writes blocks as they come, until the Recorder is closed.
func (r *Recorder) write() {
	defer close(r.done)
	synced, offset := time.Now(), r.out.offset
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		select {
		case <-r.wake:
		case <-retry.C:
			r.resume()
		case <-r.closing:
			<-r.flushed
			r.finish()
			return
		}
		r.writeQueue()
		if r.out.offset > offset && time.Since(synced) >= syncEvery {
			r.sync()
			synced, offset = time.Now(), r.out.offset
		}
	}
}

// writeQueue writes until nothing is queued.
func (r *Recorder) writeQueue() {
	for b := r.next(); b != nil; b = r.next() {
		before := r.out.err
		if before == nil {
			r.out.records(b)
		}
		r.written(b, r.out.err != nil)
		if before == nil && r.out.err != nil {
			r.fail()
		}
	}
}

// written gives back the room of a block.
func (r *Recorder) written(b *block, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lost {
		r.lose(b)
	}
	r.recycle(b)
	r.pending.Add(-1)
	r.room.Broadcast()
}

// lose counts a block that is not written among what is shed.
func (r *Recorder) lose(b *block) {
	r.missing += uint64(b.counts[KindStatement])
	r.lost.add(&Gap{
		From: b.info.Earliest, To: b.info.LastDone, Statements: uint64(b.counts[KindStatement]),
		Sessions: uint64(b.counts[KindSessionStart] + b.counts[KindSessionEnd]),
	})
	r.lost.add(&b.gap)
}

// fail sheds everything from here on, as the file could not be written.
func (r *Recorder) fail() {
	r.tell(r.out.err)
	if !r.out.takeBack() {
		r.out.file = nil // and there is no hope
	}
	r.each(func(l *Lane) { l.fail(r.out) })
}

// fail loses what is in the lane. Of the statements that are begun only those in the file are.
func (l *Lane) fail(out *output) {
	if l.closed {
		l.off = failed
		return
	}
	l.r.mu.Lock()
	l.r.lose(l.enc.block)
	l.r.mu.Unlock()
	l.enc.begin(l.enc.block)
	l.emptied()
	l.off = failed
	l.outage = root(out.err).Error()
	for _, of := range l.enc.begun {
		for _, s := range of {
			if !out.open.has(s.command) {
				l.unbegun.add(s)
			}
		}
	}
	for _, of := range l.unbegun {
		for _, s := range of {
			l.enc.begun.remove(s.command)
		}
	}
	l.noteWaits()
	if l.r.opts.OnFull == ShedTransactions {
		l.shedding.outage()
	}
}

// root is what an error came from, without the words around it.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// resume goes on with a file that could not be written, if it can be by now, behind a record of the gap.
func (r *Recorder) resume() {
	if r.out.err == nil || r.out.file == nil || !r.out.hasRoom() || !r.mend() {
		return
	}
	r.out.wanted = 0
	r.each(func(l *Lane) {
		l.off = stored
		if r.isStopped() {
			l.off = stopped
		}
	})
	if r.opts.Resumed != nil {
		r.opts.Resumed()
	}
}

func (r *Recorder) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// mend tells in the file what was lost, and so finds out whether it can be written again.
func (r *Recorder) mend() bool {
	if !r.out.takeBack() {
		return false
	}
	failure := r.out.err
	r.out.err = nil
	r.tellLost(root(failure).Error())
	if r.out.err == nil {
		return true
	}
	r.out.err = failure
	r.out.takeBack()
	return false
}

// tellLost writes a block with what was lost or shed because the file could not be written, if anything was.
func (r *Recorder) tellLost(why string) {
	r.mu.Lock()
	lost := r.lost
	r.lost = Gap{}
	r.mu.Unlock()
	r.each(func(l *Lane) {
		for why := range l.gaps {
			if cause(why) == failed || l.closed {
				g := l.takeGap(cause(why))
				lost.add(&g)
			}
		}
	})
	if lost.empty() {
		return
	}
	lost.Reason = reasons[failed] + ": " + why
	if r.gaps == nil {
		r.gaps = newEncoder()
	}
	r.gaps.gap(&lost)
	b := r.gaps.take(new(block))
	r.out.records(b)
	if r.out.err != nil {
		r.mu.Lock()
		r.lost.add(&lost)
		r.mu.Unlock()
	}
}

func (r *Recorder) sync() {
	if r.opts.Sync == nil || r.out.err != nil {
		return
	}
	if err := r.opts.Sync(); err != nil {
		r.out.err, r.out.file = err, nil
		r.fail()
	}
}

// finish writes what is left and the file's end. A disk that runs full here may yet have room for the end, as the torn
// block is taken back.
func (r *Recorder) finish() {
	r.each((*Lane).finish)
	r.writeQueue()
	if r.out.err != nil && r.out.file != nil {
		r.mend()
	}
	if r.out.err == nil {
		r.out.end(r.Ledger())
		if r.out.err != nil {
			r.tell(r.out.err)
			r.out.takeBack()
		}
	}
	r.sync()
	r.opts.Memory.Give(cap(r.out.index.packed))
	r.giveAll()
}

// finish hands on all there is.
func (l *Lane) finish() {
	if l.off != failed {
		l.noteGaps()
	}
	if l.enc.block.info.Records > 0 {
		l.r.enqueue(l)
	}
}
