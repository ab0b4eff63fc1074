package capture

// What a Recorder takes from its account: a block has bytes charged before it is filled, and until it is written.

// provide takes what every recording needs, and the reserved room.
func (r *Recorder) provide() {
	m := r.opts.Memory
	fixed := min(writerCost, m.Limit()/4)
	r.force(fixed)
	reserved := m.Limit() / 8
	if r.opts.OnFull == ShedTransactions {
		reserved = m.Limit() / 4
	}
	for reserved > 0 && !m.Take(reserved) {
		reserved /= 2
	}
	r.taken.Add(int64(reserved))
	r.reserved, r.reserve = reserved, reserved
	r.most = m.Limit() - fixed - reserved - r.opts.Lanes*blockCost - 2*recordCost
	r.kept = max(0, min(maxKept, r.most/8))
	r.step = min(mostStep, m.Limit()/64)
}

// take takes n bytes for a record, which may be one for which room is reserved.
func (r *Recorder) take(n int, reserved bool) bool {
	if r.takeFree(n) {
		return true
	}
	if !reserved && r.idle.Load() == 0 {
		return false // without the lock: this is how statements are shed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.free {
		r.give(b.charged)
	}
	r.free = nil
	r.idle.Store(0)
	if r.takeFree(n) {
		return true
	}
	if !reserved || n > r.reserve {
		return false
	}
	r.reserve -= n
	return true
}

func (r *Recorder) takeFree(n int) bool {
	ok := r.opts.Memory.Take(n)
	if ok {
		r.taken.Add(int64(n))
	}
	return ok
}

func (r *Recorder) force(n int) {
	r.opts.Memory.force(n)
	r.taken.Add(int64(n))
}

// give gives n bytes back, first of all to the reserved room. It is called with mu held.
func (r *Recorder) give(n int) {
	back := min(n, r.reserved-r.reserve)
	r.reserve += back
	r.opts.Memory.Give(n - back)
	r.taken.Add(int64(back - n))
}

// settle gives back what a block has charged beyond what it takes.
func (r *Recorder) settle(b *block) {
	if over := b.charged - b.footprint(); over > 0 {
		r.give(over)
		b.charged -= over
	}
}

// recycle gives back what a written block has charged, or keeps the block for use again.
func (r *Recorder) recycle(b *block) {
	b.trim()
	if len(r.free) > len(r.lanes) {
		r.give(b.charged)
		return
	}
	r.settle(b)
	r.free = append(r.free, b)
	r.idle.Add(1)
}

// giveAll ends the account of a recorder that is closed.
func (r *Recorder) giveAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opts.Memory.Give(int(r.taken.Swap(0)))
	r.free = nil
	r.idle.Store(0)
	for _, l := range r.lanes {
		l.enc = nil
	}
}
