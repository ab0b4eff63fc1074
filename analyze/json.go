package analyze

import (
	"encoding/json"
	"io"
)

// Schema is the version of the JSON. It grows when a field changes its meaning or goes, not when one is added.
const Schema = 1

// WriteJSON prints reports as one JSON object, side by side too if there are several.
func WriteJSON(w io.Writer, reports []*Report) error {
	doc := struct {
		Schema     int         `json:"schema"`
		Runs       []*Report   `json:"runs"`
		SideBySide *SideBySide `json:"side_by_side,omitempty"`
	}{Schema: Schema, Runs: reports}
	if len(reports) > 1 {
		doc.SideBySide = NewSideBySide(reports)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}
