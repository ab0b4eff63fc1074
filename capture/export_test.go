package capture

// SetLimit makes a statement with more bytes of byte strings too long to be stored whole.
func (w *Writer) SetLimit(n int) { w.enc.limit = n }

// Held is how many records wait for their turn.
func (o *Ordered) Held() int { return len(o.heap) }
