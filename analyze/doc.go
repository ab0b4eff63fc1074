// Package analyze turns captures into figures. In go the records of one run, one at a time, whoever produced them; out
// comes a Report: a headline, a table per statement type and per transaction type, errors, and what sysbench would have
// counted. Reports print as text and as JSON (docs/analyze.md), alone or side by side.
package analyze
