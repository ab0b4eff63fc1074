package proxy

// loginLines throttle the log's lines about logins that fail: a flood of clients must not be one of lines.
type loginLines struct {
	unreached throttle // the backend
	headless  throttle // without a PROXY header that makes sense
	refused   throttle // with an error
	failed    throttle // in TLS
	late      throttle
}

// warn logs what may happen thousands of times in a second.
func (c *conn) warn(lines *throttle, message string, args ...any) {
	more, ok := lines.allow()
	if !ok {
		return
	}
	args = append(args, "session", c.id)
	if more > 0 {
		args = append(args, "more_of_late", more)
	}
	c.proxy.Logger.Warn(message, args...)
}
