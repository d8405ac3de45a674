package desktops

import (
	"math"
	"math/rand/v2"
	"time"
)

// Sizes of new files are log-normal, as in the paper: the logarithm of the bytes has
// this mean and variance.
const (
	sizeMu       = 8.46
	sizeVariance = 2.38
)

// Habits are what users do. The paper used a trace that cannot be had; it says of it
// that 98 % of the calls of stat were followed by another one and that most files
// were open for less than 1 ms. All else here is an assumption, with its reason.
type Habits struct {
	// Opens is how many files a user opens on a working day: one every minute and a
	// half of a day of eight hours.
	Opens float64
	// Burst is how many files are opened in a row, as by one command of the user, and
	// Stats how many calls of stat come before them. With 50 in the mean, 98 % of
	// them are followed by another.
	Burst, Stats float64
	// Locality is the exponent of Zipf's law by which a user opens files: the file
	// that was opened r-th last has a probability like 1/r^Locality. 1 is Zipf's
	// own law, which measured references to files follow more or less. 0: all files
	// alike.
	Locality float64
	// Files is how many files each user has at the start.
	Files int
	// Shared is the share of opens that read another user's file: most files of an
	// office have one user.
	Shared float64
	// Create, Replace, Append and Overwrite are shares of opens; the others read.
	// About nine of ten opens only read (Baker et al., SOSP 1991). A program that
	// stores a document replaces it, since whole files are written far more often
	// than parts.
	Create, Replace, Append, Overwrite float64
	// Temporary is the share of new files that are deleted after Lifetime in the
	// mean: most new files live for minutes.
	Temporary float64
	Lifetime  time.Duration
	// Open is the median time that a file is open, and OpenSpread the standard
	// deviation of its logarithm: most are open for less than 1 ms, and some for
	// seconds.
	Open       time.Duration
	OpenSpread float64
	// LoginDays is how many working days one login lasts: more than 1 where users
	// lock their screens overnight.
	LoginDays int
	// Stays makes a user who sat at another machine stay there until the next move.
	// Otherwise the user's own desk is where each login is that is no move.
	Stays bool
}

// DefaultHabits are those of the tables.
func DefaultHabits() Habits {
	return Habits{
		Opens: 300, Burst: 5, Stats: 50, Locality: 1, Files: 2000, Shared: 0.05,
		Create: 0.05, Replace: 0.04, Append: 0.02, Overwrite: 0.01,
		Temporary: 0.6, Lifetime: 10 * time.Minute, Open: 250 * time.Microsecond, OpenSpread: 2, LoginDays: 1,
	}
}

// A working day: when users log in, and how long they stay.
const (
	loginAt     = 9 * time.Hour
	loginSpread = time.Hour
	stay        = 8 * time.Hour
	staySpread  = 90 * time.Minute
	spacing     = 2 * time.Second // between two opens of a burst, in the mean
	workingDays = 5               // of seven
)

// fileBytes draws the size of a new file.
func fileBytes(r *rand.Rand) int64 {
	return max(1, int64(math.Exp(sizeMu+math.Sqrt(sizeVariance)*r.NormFloat64())))
}

// around draws a time near a mean, within three standard deviations.
func around(r *rand.Rand, mean, spread time.Duration) time.Duration {
	return mean + time.Duration(max(-3, min(3, r.NormFloat64()))*float64(spread))
}

// after draws a time that passes until the next of what happens at random.
func after(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}

// several draws how many there are in a row: one at least, and each is the last
// with the same probability.
func several(r *rand.Rand, mean float64) int {
	if mean <= 1 {
		return 1
	}
	return 1 + int(math.Log(1-r.Float64())/math.Log(1-1/mean))
}

// rank draws a place from 0 to n-1, of which the r-th has a probability like
// 1/(r+1)^exponent. It takes the law as continuous, so that one draw is enough.
func rank(r *rand.Rand, n int, exponent float64) int {
	u, span := r.Float64(), float64(n+1)
	var at float64
	if e := 1 - exponent; math.Abs(e) < 1e-9 {
		at = math.Pow(span, u)
	} else {
		at = math.Pow(u*(math.Pow(span, e)-1)+1, 1/e)
	}
	return min(max(int(at)-1, 0), n-1)
}
