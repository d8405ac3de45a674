package bootstrap

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/wire"
)

// SignInLink returns the token of a link that signs the console's first
// administrator in, once and within life (people.MaxLinkLife at most). A cluster
// without accounts gets that account. The audit log says that who made them. It fails with NotFound or Permission where
// there are accounts and that one was removed or disabled.
func SignInLink(ctx context.Context, admin Admin, who string, life time.Duration) (token string, err error) {
	const op fault.Op = "bootstrap.SignInLink"
	ctx, cancel := context.WithTimeout(ctx, registerLimit)
	defer cancel()
	key, err := wire.LoadKey(admin.Key)
	if err != nil {
		return "", err
	}
	host, err := wire.New(wire.Options{Key: key})
	if err != nil {
		return "", fault.Wrap(fault.IO, op, "", err)
	}
	defer func() { _ = host.Close() }() // everything was answered
	store, err := join.Dial(host, admin.GeoConfig)
	if err != nil {
		return "", err
	}
	defer func() { _ = store.Close() }() // likewise
	service, by := people.New(people.Options{Store: store}), people.Actor{Who: who}
	accounts, err := service.Accounts(ctx)
	if err != nil {
		return "", err
	}
	if len(accounts) == 0 {
		if _, err := service.Add(ctx, by, people.FirstAccount, people.Administrator); err != nil {
			return "", err
		}
	}
	return service.MakeLink(ctx, by, people.FirstAccount, life)
}
