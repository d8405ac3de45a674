package topology

import (
	"fmt"
	"strings"
)

// Suggest returns a clause that names the nearest of the known words, such as
// `; did you mean "rate"?`, or nothing where none is near.
func Suggest(word string, known []string) string {
	best, at := "", len(word)/2+1
	for _, k := range known {
		if d := distance(word, k); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// SuggestOf is Suggest, and lists what is known where nothing is near.
func SuggestOf(word string, known []string) string {
	if hint := Suggest(word, known); hint != "" {
		return hint
	}
	const most = 20
	list := known
	if len(list) > most {
		list = append(list[:most:most], "...")
	}
	return "; there are " + strings.Join(list, ", ")
}
