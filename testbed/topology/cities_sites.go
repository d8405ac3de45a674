package topology

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// readCities reads the key `cities`: places, and how their distances become
// round trips.
func (d *draft) readCities(n *yaml.Node) {
	c := &citiesDraft{factor: DefaultFibreFactor, lastMile: DefaultLastMile}
	d.cities = c
	d.Map(n, "cities", Keys{
		"places":       func(n *yaml.Node) { d.List(n, "places", d.readCity) },
		"fibre_factor": func(n *yaml.Node) { d.Number(n, 1, maxFibreFactor, &c.factor) },
		"last_mile":    func(n *yaml.Node) { d.Time(n, maxRTT, &c.lastMile) },
	})
	if len(c.cities) == 0 && len(d.errs) == 0 {
		d.Bad(n, "cities have places: names, or a name with latitude and longitude")
	}
}

// readCity reads a name that is known, or a name with its place.
func (d *draft) readCity(n *yaml.Node) {
	n = plain(n)
	var c City
	if n.Kind == yaml.ScalarNode {
		place, known := cities()[n.Value]
		if !known {
			var names []string
			for _, k := range Cities() {
				names = append(names, k.Name)
			}
			d.Bad(n, "unknown city %q%s; or give it as {name: %s, latitude: ..., longitude: ...}", n.Value, Suggest(n.Value, names), n.Value)
			return
		}
		c = City{Name: n.Value, Place: place}
	} else {
		given := 0
		d.Map(n, "a place", Keys{
			"name":      func(n *yaml.Node) { d.Text(n, &c.Name); d.checkName(n, c.Name) },
			"latitude":  func(n *yaml.Node) { given++; d.Number(n, -90, 90, &c.Latitude) },
			"longitude": func(n *yaml.Node) { given++; d.Number(n, -180, 180, &c.Longitude) },
		})
		if c.Name == "" || given != 2 {
			d.Bad(n, "a place has a name, a latitude and a longitude")
		}
	}
	for i, other := range d.cities.cities {
		if other.Name == c.Name {
			d.Bad(n, "the place %q is there already, at line %d", c.Name, d.cities.nodes[i].Line)
			return
		}
	}
	d.cities.cities, d.cities.nodes = append(d.cities.cities, c), append(d.cities.nodes, n)
}

// fromCities makes a site of each place.
func (d *draft) fromCities() *Topology {
	return generate(d.cities.cities, d.defaults, d.wan, d.cities.factor, d.cities.lastMile)
}

// generate makes the sites, and a path of each pair from its distance.
func generate(places []City, defaults Site, base Path, factor float64, lastMile time.Duration) *Topology {
	var out Topology
	for _, c := range places {
		s := defaults
		s.Name = c.Name
		s.Place = &Place{c.Latitude, c.Longitude}
		out.Sites = append(out.Sites, s)
	}
	out.connect(func(a, b int) Path {
		p := base
		p.Delay = RoundTrip(places[a].Place, places[b].Place, factor, lastMile) / 2
		return p
	})
	return &out
}
