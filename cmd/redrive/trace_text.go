package main

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"redrive/capture"
	"redrive/internal/wire"
)

func commandName(s *capture.Statement) string { return wire.CommandName(s.Command) }

// printable is text with what would break a line, or is no character, escaped: \n, \r, \t, \\ and \xNN.
func printable(text string) string { return string(appendPrintable(nil, []byte(text))) }

func appendPrintable(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\\':
			dst = append(dst, `\\`...)
		case r < ' ' || r >= 0x7F && r < 0xA0 || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && n == 1:
			for _, b := range text[:n] {
				dst = fmt.Appendf(dst, `\x%02x`, b)
			}
		default:
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return dst
}

// literals are an execute's parameters as they would stand in SQL text, printable.
func literals(s *capture.Statement) ([]string, error) {
	p := &s.Params
	if s.Command == wire.ComStmtBulkExecute {
		return nil, errors.New("they are rows of a bulk execute")
	}
	if len(p.Types) == 0 {
		if len(p.Values) > 0 {
			return nil, errors.New("their types are not known")
		}
		return nil, nil
	}
	params, err := wire.DecodeParams(p.Nulls, p.Types, p.Values, p.Long)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(params))
	for i, param := range params {
		out[i] = printableLiteral(param.AppendText(nil))
	}
	return out, nil
}

// printableLiteral escapes what is no character; lines are safe already.
func printableLiteral(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	var dst []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		} else {
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return string(dst)
}
