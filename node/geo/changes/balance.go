package changes

import (
	"context"
	"fmt"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// BalanceChange is what becomes different of a site's marks; nil fields stay.
type BalanceChange struct {
	Off       *bool
	High, Low *int
}

// Of returns marks with the change made.
func (c BalanceChange) Of(b geoconfig.Balance) geoconfig.Balance {
	if c.Off != nil {
		b.Off = *c.Off
	}
	if c.High != nil {
		b.High = *c.High
	}
	if c.Low != nil {
		b.Low = *c.Low
	}
	return b
}

// SetBalance changes when a site's nodes give slices away, and returns what holds then.
// It changes nothing where that holds already. Errors: NotFound (the site), Invalid
// (marks that make no sense), Conflict, and the store's.
func SetBalance(ctx context.Context, store geoconfig.Store, o Order, name ids.Site, c BalanceChange) (geoconfig.Balance, error) {
	s, err := site(ctx, store, name)
	if err != nil {
		return geoconfig.Balance{}, err
	}
	next := c.Of(s.Marks())
	if wrong := next.Check(); wrong != "" {
		return next, fault.E(fault.Invalid, "changes.SetBalance", string(name), wrong)
	}
	if next == s.Marks() {
		return next, nil
	}
	s.Balance, s.Revision = &next, o.match(s.Revision)
	return next, o.apply(ctx, store, geoconfig.Batch{Sites: []geoconfig.Site{s}}, "balance.set", s.Key(), BalanceText(next))
}

// BalanceText is what holds at a site, for people.
func BalanceText(b geoconfig.Balance) string {
	text := fmt.Sprintf("from above %d%% down to %d%%", b.High, b.Low)
	if b.Off {
		return "off (" + text + ")"
	}
	return text
}
