//go:build race

package calibration

const raceEnabled = true
