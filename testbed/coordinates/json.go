package coordinates

import (
	"encoding/json"
	"math"
)

// known is v, or nothing where the plain algorithm lost all measure: JSON has
// no word for that but null.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// MarshalJSON writes null for errors that are not finite.
func (a Accuracy) MarshalJSON() ([]byte, error) {
	type plain Accuracy
	return json.Marshal(struct {
		plain
		MedianError *float64 `json:"median_relative_error"`
		P90Error    *float64 `json:"p90_relative_error"`
	}{plain(a), known(a.MedianError), known(a.P90Error)})
}

// MarshalJSON writes null for what is not finite.
func (p Point) MarshalJSON() ([]byte, error) {
	type plain Point
	return json.Marshal(struct {
		plain
		MedianError *float64 `json:"median_relative_error"`
		P90Error    *float64 `json:"p90_relative_error"`
		Centre      *float64 `json:"centre_ms"`
	}{plain(p), known(p.MedianError), known(p.P90Error), known(p.Centre)})
}
