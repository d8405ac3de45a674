package fault

import "net/http"

// statuses is the table from kinds to what the admin API answers.
var statuses = [kinds]int{
	None:         http.StatusOK,
	Other:        http.StatusInternalServerError,
	NotFound:     http.StatusNotFound,
	Exists:       http.StatusConflict,
	Permission:   http.StatusForbidden,
	NotOwner:     http.StatusForbidden,
	NotDirectory: http.StatusBadRequest,
	IsDirectory:  http.StatusBadRequest,
	NotEmpty:     http.StatusConflict,
	Invalid:      http.StatusBadRequest,
	NameTooLong:  http.StatusBadRequest,
	TooManyLinks: http.StatusConflict,
	CrossDevice:  http.StatusBadRequest,
	NoSpace:      http.StatusInsufficientStorage,
	Quota:        http.StatusInsufficientStorage,
	TooLarge:     http.StatusRequestEntityTooLarge,
	NotSupported: http.StatusNotImplemented,
	Stale:        http.StatusGone,
	Busy:         http.StatusConflict,
	Again:        http.StatusServiceUnavailable,
	Interrupted:  http.StatusServiceUnavailable,
	TimedOut:     http.StatusGatewayTimeout,
	Canceled:     499, // the client went away; nobody reads it, but logs do
	Unreachable:  http.StatusBadGateway,
	WrongEpoch:   http.StatusConflict,
	NotActive:    http.StatusMisdirectedRequest,
	Conflict:     http.StatusConflict,
	Duplicate:    http.StatusConflict,
	Expired:      http.StatusGone,
	Unauthorized: http.StatusUnauthorized,
	Corrupt:      http.StatusInternalServerError,
	IO:           http.StatusInternalServerError,
	Closed:       http.StatusServiceUnavailable,
	Overloaded:   http.StatusTooManyRequests,
	NoAttribute:  http.StatusNotFound,
	TooSmall:     http.StatusBadRequest,
	Deadlock:     http.StatusConflict,
	Loop:         http.StatusBadRequest,
	ReadOnly:     http.StatusForbidden,
	NewerVersion: http.StatusUpgradeRequired,
	WrongCluster: http.StatusMisdirectedRequest,
	NoLocks:      http.StatusServiceUnavailable,
	TextBusy:     http.StatusConflict,
	Missing:      http.StatusFailedDependency,
	LostLock:     http.StatusConflict,
	Usage:        http.StatusBadRequest,
	NoDevice:     http.StatusNotFound,
	BadHandle:    http.StatusBadRequest,
	ClockSkew:    http.StatusInternalServerError,
}

// HTTPStatus returns the status that an HTTP answer of this kind has.
func (k Kind) HTTPStatus() int { return statuses[k.known()] }
