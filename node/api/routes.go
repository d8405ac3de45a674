package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/events"
	"cartwheel.dev/node/api/problem"
)

// register adds all routes.
func (s *Server) register() {
	route(s, http.MethodGet, "/healthz", "health", "Say that the process answers", s.reads.GetHealth)
	route(s, http.MethodGet, "/readyz", "readiness", "Say that the node serves", s.reads.GetReadiness)
	route(s, http.MethodGet, base+"/overview", "get-overview", "Show how the cluster is", s.reads.GetOverview)
	route(s, http.MethodGet, base+"/sites", "list-sites", "List the sites", s.reads.ListSites)
	route(s, http.MethodGet, base+"/sites/{name}", "get-site", "Show a site", s.reads.GetSite)
	route(s, http.MethodGet, base+"/nodes", "list-nodes", "List the nodes", s.reads.ListNodes)
	route(s, http.MethodGet, base+"/nodes/{id}", "get-node", "Show a node", s.reads.GetNode)
	route(s, http.MethodGet, base+"/slices", "list-slices", "List the slices", s.reads.ListSlices)
	route(s, http.MethodGet, base+"/slices/{id}", "get-slice", "Show a slice, and why its copies are where they are", s.reads.GetSlice)
	route(s, http.MethodGet, base+"/network", "get-network", "Show the distances between the nodes", s.reads.GetNetwork)
	route(s, http.MethodGet, base+"/activity", "list-activity", "List the audit log, the newest first", s.reads.ListActivity)
	route(s, http.MethodGet, base+"/drills", "list-drills", "List the drills that are over, the newest first", s.reads.ListDrills)
	route(s, http.MethodGet, base+"/clients", "list-clients", "List the clients connected to each node", s.reads.ListClients)
	route(s, http.MethodGet, base+"/operations", "list-operations", "List the work under way", s.reads.ListOperations)
	route(s, http.MethodGet, base+"/users", "list-users", "List the users' keys", s.reads.ListUsers)
	route(s, http.MethodGet, base+"/tokens", "list-tokens", "List the tokens that add nodes", s.reads.ListTokens)
	route(s, http.MethodGet, base+"/database", "get-database", "Show the configuration store", s.reads.GetDatabase)
	route(s, http.MethodGet, base+"/settings", "list-settings", "List this node's settings", s.reads.ListSettings)
	route(s, http.MethodGet, base+"/experiments", "list-experiments", "List the runs of experiments, the newest first", s.reads.ListExperiments)
	route(s, http.MethodGet, base+"/experiments/{run}", "get-experiment", "Show a run of an experiment", s.reads.GetExperiment)
	route(s, http.MethodGet, base+"/experiments/{run}/figures/{file}", "get-figure", "Show a figure of a run, as SVG", s.reads.GetFigure)
	s.registerPast()
	s.registerChanges()
	s.registerPeople()
	s.registerIssuer()
	s.registerEvents()
}

// registerPast adds the routes of snapshots, and of what is stored and read.
func (s *Server) registerPast() {
	p := pastRoutes{&s.o}
	route(s, http.MethodGet, base+"/snapshots", "list-snapshots", "List the named snapshots, the newest first", s.reads.ListSnapshots)
	route(s, http.MethodPost, base+"/snapshots", "add-snapshot", "Keep the whole tree as it is now, under a name", p.addSnapshot)
	route(s, http.MethodDelete, base+"/snapshots/{name}", "remove-snapshot", "Delete a snapshot: what only it kept is collected", p.removeSnapshot)
	route(s, http.MethodGet, base+"/schedules", "list-schedules", "List the schedules of snapshots", s.reads.ListSchedules)
	route(s, http.MethodPost, base+"/schedules", "add-schedule", "Have snapshots made again and again", p.addSchedule)
	route(s, http.MethodDelete, base+"/schedules/{name}", "remove-schedule", "End a schedule: what it made stays until it expires", p.removeSchedule)
	route(s, http.MethodGet, base+"/scrub", "list-scrubs", "Show how far the nodes are with reading all that they store, and what they found", s.listScrubs)
	route(s, http.MethodPost, base+"/nodes/{id}/scrub", "scrub-node", "Have a node read all that it stores", s.scrubNode)
	route(s, http.MethodGet, base+"/space", "get-space", "Show what holds the nodes' disks and the space of the slices", s.reads.GetSpace)
	route(s, http.MethodPost, base+"/space", "count-space", "Begin to count what holds the space of the slices", s.reads.CountSpace)
}

// registerChanges adds the routes that change something, and three that only measure
// and predict.
func (s *Server) registerChanges() {
	route(s, http.MethodPost, base+"/sites", "add-site", "Add a site", s.addSite)
	route(s, http.MethodPut, base+"/sites/{name}", "set-site", "Say where a site is", s.setSite)
	route(s, http.MethodDelete, base+"/sites/{name}", "remove-site", "Remove a site at which no node stands", s.removeSite)
	route(s, http.MethodDelete, base+"/nodes/{id}", "remove-node", "Remove a node that is a member of no slice", s.removeNode)
	route(s, http.MethodPost, base+"/nodes/{id}/drain", "drain-node", "Have a node's slices leave it, or say what stands in the way", s.drainNode)
	route(s, http.MethodPost, base+"/nodes/{id}/undrain", "undrain-node", "Let a node take slices again", s.undrainNode)
	route(s, http.MethodPost, base+"/sites/{name}/drain", "drain-site", "Have the slices leave all nodes of a site, or say what stands in the way", s.drainSite)
	route(s, http.MethodPost, base+"/sites/{name}/undrain", "undrain-site", "Let the nodes of a site take slices again", s.undrainSite)
	route(s, http.MethodPut, base+"/slices/{id}/policy", "set-slice-policy", "Give a slice another policy, which the nodes then follow", s.setPolicy)
	route(s, http.MethodPost, base+"/slices/{id}/hand-over", "hand-over-slice", "Make another member the active", s.handOver)
	route(s, http.MethodPost, base+"/users", "add-user", "Add a user's key", s.addUser)
	route(s, http.MethodPut, base+"/users/{name}/role", "set-user-role", "Make a user an administrator, or an administrator a user", s.setUserRole)
	route(s, http.MethodDelete, base+"/users/{name}", "revoke-user", "Remove a user's key", s.revokeUser)
	route(s, http.MethodPost, base+"/tokens", "add-token", "Make a token that adds one node", s.addToken)
	route(s, http.MethodDelete, base+"/tokens/{name}", "revoke-token", "Take a token back", s.revokeUser)
	route(s, http.MethodPost, base+"/network/probe", "probe-network", "Have a node measure its distances now", s.reads.Probe)
	route(s, http.MethodPost, base+"/what-if", "what-if", "Predict what changes would do", s.reads.WhatIf)
	route(s, http.MethodPost, base+"/availability", "predict-availability", "Predict a slice's downtime and loss in a year", s.reads.Availability)
}

// registerPeople adds the routes of accounts and sessions.
func (s *Server) registerPeople() {
	route(s, http.MethodGet, base+"/session", "get-session", "Show who is signed in", s.getSession)
	route(s, http.MethodGet, changePath, "check-change", "Say whether a request may change something at a server beside the API", s.checkChange)
	route(s, http.MethodPost, base+"/session", "sign-in", "Sign in by a password or a one-time link", s.signIn)
	route(s, http.MethodDelete, base+"/session", "sign-out", "Sign out", s.signOut)
	route(s, http.MethodPut, base+"/session/password", "change-password", "Change one's own password, and end all other sessions", s.changePassword)
	route(s, http.MethodGet, base+"/sessions", "list-sessions", "List one's sessions, or all", s.listSessions)
	route(s, http.MethodDelete, base+"/sessions/{id}", "revoke-session", "End a session: of others only as an administrator", s.revokeSession)
	route(s, http.MethodGet, base+"/accounts", "list-accounts", "List the accounts of the console", s.listAccounts)
	route(s, http.MethodPost, base+"/accounts", "add-account", "Add an account", s.addAccount)
	route(s, http.MethodGet, base+"/accounts/{name}", "get-account", "Show an account", s.getAccount)
	route(s, http.MethodPut, base+"/accounts/{name}", "change-account", "Change an account's role, or disable it", s.changeAccount)
	route(s, http.MethodDelete, base+"/accounts/{name}", "remove-account", "Remove an account", s.removeAccount)
	route(s, http.MethodPut, base+"/accounts/{name}/subject", "set-subject", "Let an account sign in by the OIDC provider, or no more", s.setSubject)
	route(s, http.MethodPost, base+"/accounts/{name}/link", "make-link", "Make a one-time link that signs an account in", s.makeLink)
}

// registerIssuer adds the routes of the OIDC provider, and one that names it.
func (s *Server) registerIssuer() {
	route(s, http.MethodGet, base+"/session/ways", "get-sign-in-ways", "Show how people may sign in", s.getWays)
	route(s, http.MethodGet, base+"/session/oidc", "begin-oidc", "Send the browser to the OIDC provider", s.beginOIDC)
	route(s, http.MethodGet, CallbackPath, "finish-oidc", "Sign in whom the OIDC provider sent back", s.finishOIDC)
}

// route adds a route. What its function fails with becomes a Problem.
func route[I, O any](s *Server, method, path, id, summary string, f func(context.Context, *I) (*O, error)) {
	op := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxBody,
		Description: "Role: " + roles[method+" "+path].String() + ".", Responses: s.problems()}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			p := problem.Of(err, requestID(ctx))
			if in, ok := any(in).(interface{ isConditional() bool }); ok && in.isConditional() && fault.Is(err, fault.Conflict) {
				p.Status, p.Title = http.StatusPreconditionFailed, problem.Title(http.StatusPreconditionFailed)
			}
			s.logFailure(ctx, p, err)
			return nil, p
		}
		return out, nil
	})
}

// problems describes what a route answers where it fails.
func (s *Server) problems() map[string]*huma.Response {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem.Problem](), true, "Problem")
	return map[string]*huma.Response{"default": {Description: "A problem (RFC 9457)",
		Content: map[string]*huma.MediaType{problem.MediaType: {Schema: schema}}}}
}

// registerEvents adds the stream, with the types of its events.
func (s *Server) registerEvents() {
	registry := s.api.OpenAPI().Components.Schemas
	var kinds []*huma.Schema
	for _, t := range []reflect.Type{reflect.TypeFor[events.RevisionEvent](), reflect.TypeFor[events.AuditEvent](), reflect.TypeFor[events.StatusEvent](), reflect.TypeFor[events.GapEvent]()} {
		kinds = append(kinds, registry.Schema(t, true, t.Name()))
	}
	responses := s.problems()
	responses["200"] = &huma.Response{Description: "Events named revision, audit, status and gap; data is their JSON",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{OneOf: kinds}}}}
	path := base + "/events"
	huma.Register(s.api, huma.Operation{OperationID: "stream-events", Method: http.MethodGet, Path: path, Summary: "Stream what changes",
		Description: "Role: " + roles["GET "+path].String() + ". A comment comes every 15 s.", Responses: responses}, s.events.Stream)
}
