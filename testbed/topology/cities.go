package topology

import (
	"math"
	"sort"
	"time"
)

// City is a place with a name.
type City struct {
	Name string
	Place
}

// Cities returns the cities that are known by name, in alphabetical order.
func Cities() []City {
	var out []City
	for name, p := range cities() {
		out = append(out, City{Name: name, Place: p})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// cities are the places of city centres, to a hundredth of a degree or so.
func cities() map[string]Place {
	return map[string]Place{
		"accra": {5.56, -0.20}, "amsterdam": {52.37, 4.90}, "ankara": {39.93, 32.86}, "athens": {37.98, 23.73},
		"atlanta": {33.75, -84.39}, "auckland": {-36.85, 174.76}, "bangkok": {13.76, 100.50}, "barcelona": {41.39, 2.17},
		"beijing": {39.90, 116.41}, "berlin": {52.52, 13.40}, "bogota": {4.71, -74.07}, "boston": {42.36, -71.06},
		"brussels": {50.85, 4.35}, "bucharest": {44.43, 26.10}, "budapest": {47.50, 19.04}, "buenos-aires": {-34.60, -58.38},
		"cairo": {30.04, 31.24}, "cape-town": {-33.92, 18.42}, "chicago": {41.88, -87.63}, "copenhagen": {55.68, 12.57},
		"dallas": {32.78, -96.80}, "delhi": {28.61, 77.21}, "denver": {39.74, -104.99}, "dubai": {25.20, 55.27},
		"dublin": {53.35, -6.26}, "frankfurt": {50.11, 8.68}, "geneva": {46.20, 6.14}, "hamburg": {53.55, 9.99},
		"helsinki": {60.17, 24.94}, "hong-kong": {22.32, 114.17}, "honolulu": {21.31, -157.86}, "istanbul": {41.01, 28.98},
		"jakarta": {-6.21, 106.85}, "johannesburg": {-26.20, 28.05}, "kyiv": {50.45, 30.52}, "lagos": {6.52, 3.38},
		"lima": {-12.05, -77.04}, "lisbon": {38.72, -9.14}, "london": {51.51, -0.13}, "los-angeles": {34.05, -118.24},
		"madrid": {40.42, -3.70}, "manila": {14.60, 120.98}, "melbourne": {-37.81, 144.96}, "mexico-city": {19.43, -99.13},
		"miami": {25.76, -80.19}, "milan": {45.46, 9.19}, "montreal": {45.50, -73.57}, "moscow": {55.76, 37.62},
		"mumbai": {19.08, 72.88}, "munich": {48.14, 11.58}, "nairobi": {-1.29, 36.82}, "new-york": {40.71, -74.01},
		"osaka": {34.69, 135.50}, "oslo": {59.91, 10.75}, "paris": {48.86, 2.35}, "perth": {-31.95, 115.86},
		"prague": {50.08, 14.44}, "reykjavik": {64.15, -21.94}, "rome": {41.90, 12.50}, "san-francisco": {37.77, -122.42},
		"santiago": {-33.45, -70.67}, "sao-paulo": {-23.55, -46.63}, "seattle": {47.61, -122.33}, "seoul": {37.57, 126.98},
		"shanghai": {31.23, 121.47}, "singapore": {1.35, 103.82}, "stockholm": {59.33, 18.07}, "sydney": {-33.87, 151.21},
		"taipei": {25.03, 121.57}, "tel-aviv": {32.09, 34.78}, "tokyo": {35.68, 139.69}, "toronto": {43.65, -79.38},
		"vancouver": {49.28, -123.12}, "vienna": {48.21, 16.37}, "warsaw": {52.23, 21.01}, "washington": {38.91, -77.04},
		"zurich": {47.38, 8.54},
	}
}

const (
	earthRadiusKM = 6371.0088
	// fibreKMPerSecond is the speed of light in glass, two thirds of that in
	// nothing.
	fibreKMPerSecond = 299792.458 / 1.468
	// DefaultFibreFactor is how much longer the fibre is than the great circle.
	DefaultFibreFactor = 1.5
	// DefaultLastMile is what each end adds to a round trip.
	DefaultLastMile = time.Millisecond
	maxFibreFactor  = 10
)

// GreatCircle is the shortest way over the earth between two places, in
// kilometres, on a sphere of the mean radius (haversine formula).
func GreatCircle(a, b Place) float64 {
	rad := func(deg float64) float64 { return deg * math.Pi / 180 }
	half := func(x float64) float64 { s := math.Sin(x / 2); return s * s }
	h := half(rad(b.Latitude-a.Latitude)) + math.Cos(rad(a.Latitude))*math.Cos(rad(b.Latitude))*half(rad(b.Longitude-a.Longitude))
	return 2 * earthRadiusKM * math.Asin(math.Min(1, math.Sqrt(h)))
}

// RoundTrip is the time there and back over fibre that is factor times as long
// as the great circle, with a last mile at each end.
func RoundTrip(a, b Place, factor float64, lastMile time.Duration) time.Duration {
	seconds := 2 * GreatCircle(a, b) * factor / fibreKMPerSecond
	return time.Duration(seconds*float64(time.Second)) + 2*lastMile
}
