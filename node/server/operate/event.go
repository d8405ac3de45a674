package operate
type event struct{}
