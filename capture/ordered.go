package capture

import (
	"cmp"
	"time"
)

// Place is where a record stands in start order: a statement where it started, but one that has a begin record where
// it was done, as its begin stands where it started; a session record at its time; a gap where it began. The Reader's
// order within a session is kept even where this says otherwise.
func (r *Record) Place() time.Duration {
	switch r.Kind {
	case KindSessionStart:
		return r.Start.At
	case KindSessionEnd:
		return r.End.At
	case KindGap:
		return r.Gap.From
	case KindStatement:
		if r.Statement.Flags.Has(Begun) {
			return r.Statement.Done
		}
	}
	return r.Statement.Started()
}

// session is the session the record belongs to; ok is false for a gap.
func (r *Record) session() (id uint64, ok bool) {
	switch r.Kind {
	case KindSessionStart:
		return r.Start.Session, true
	case KindSessionEnd:
		return r.End.Session, true
	case KindGap:
		return 0, false
	}
	return r.Statement.Session, true
}

// places knows where each session's last record stands in start order.
type places map[uint64]time.Duration

// place is where the next record stands: its own place, but never before that of the session's record before it.
func (p places) place(rec *Record) time.Duration {
	place := rec.Place()
	id, ok := rec.session()
	if !ok {
		return place
	}
	place = max(place, p[id])
	p[id] = place
	if rec.Kind == KindSessionEnd {
		delete(p, id)
	}
	return place
}

// An Ordered gives a file's records in start order. It holds the records that the blocks' horizons do not yet let go:
// about a block where they are fine, the whole file where there are none.
type Ordered struct {
	r      *Reader
	heap   []waiting
	free   []*Record
	out    *Record
	floor  time.Duration // what is still to be read stands here or behind
	count  uint64
	places places
	ended  bool
}

// waiting is a record with its place; count is its place in the file.
type waiting struct {
	place time.Duration
	count uint64
	rec   *Record
}

func (w waiting) before(o waiting) bool {
	return cmp.Or(cmp.Compare(w.place, o.place), cmp.Compare(w.count, o.count)) < 0
}

// InStartOrder reads r, from where it stands, in start order. Records of equal place keep the file's order, and so do
// those of one session in any case.
func InStartOrder(r *Reader) *Ordered {
	return &Ordered{r: r, floor: -1, places: places{}}
}

// Header is the Reader's.
func (o *Ordered) Header() (*Header, error) { return o.r.Header() }

// Next gives the next record. Where the file is cut short or broken, all that could be read comes before the end.
func (o *Ordered) Next() bool {
	if o.out != nil {
		o.free = append(o.free, o.out)
		o.out = nil
	}
	for !o.ended && (len(o.heap) == 0 || o.heap[0].place > o.floor) {
		o.read()
	}
	if len(o.heap) == 0 {
		return false
	}
	o.out = o.pop()
	return true
}

// Record is the record that Next gave, valid until the next call of Next.
func (o *Ordered) Record() *Record { return o.out }

// Err is the Reader's, once Next has returned false.
func (o *Ordered) Err() error {
	if !o.ended || len(o.heap) > 0 {
		return nil
	}
	return o.r.Err()
}

// Ledger is the Reader's.
func (o *Ordered) Ledger() (Ledger, bool) { return o.r.Ledger() }

// read takes one record from the Reader.
func (o *Ordered) read() {
	if !o.r.Next() {
		o.ended = true
		return
	}
	rec := o.hold(o.r.Record())
	o.count++
	o.push(waiting{o.places.place(rec), o.count, rec})
	if o.r.lastOfBlock() {
		o.floor = max(o.floor, o.r.block.Horizon)
	}
}

func (o *Ordered) hold(rec *Record) *Record {
	var mine *Record
	if n := len(o.free); n > 0 {
		mine, o.free = o.free[n-1], o.free[:n-1]
	} else {
		mine = new(Record)
	}
	mine.copy(rec)
	return mine
}

// push and pop keep heap a binary heap; container/heap would allocate for every record.
func (o *Ordered) push(w waiting) {
	o.heap = append(o.heap, w)
	i := len(o.heap) - 1
	for i > 0 && w.before(o.heap[(i-1)/2]) {
		o.heap[i] = o.heap[(i-1)/2]
		i = (i - 1) / 2
	}
	o.heap[i] = w
}

func (o *Ordered) pop() *Record {
	top, last := o.heap[0], o.heap[len(o.heap)-1]
	o.heap = o.heap[:len(o.heap)-1]
	n := len(o.heap)
	for i := 0; n > 0; {
		child := 2*i + 1
		if child+1 < n && o.heap[child+1].before(o.heap[child]) {
			child++
		}
		if child >= n || !o.heap[child].before(last) {
			o.heap[i] = last
			break
		}
		o.heap[i] = o.heap[child]
		i = child
	}
	return top.rec
}
