package experiments

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func mailEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := mail().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Values: values}
}

func TestMail_RefusesNonsense(t *testing.T) {
	for _, set := range []map[string]string{
		{"sites": "1"}, {"servers": "0"}, {"hosts": "0"}, {"users": "14"}, {"rate": "0"}, {"reads": "1.5"}, {"mean": "0"}, {"for": "0"}, {"probe": "0"}, {"at": "0"}, {"at": "few"},
		{"ways": "fast"}, {"ways": ""}, {"sizes": "/none/such"}, {"cues": ".KeepTogether"},
	} {
		if p, err := planMail(mailEnv(t, set)); err == nil {
			t.Errorf("%v gave %+v", set, p)
		}
	}
	env := mailEnv(t, nil)
	env.Short = true
	if p, err := planMail(env); err != nil || p.sites != 2 || p.servers != 1 || p.users.Count != 10 || !slices.Equal(p.levels, []int{2}) || len(p.chosen) != 2 {
		t.Errorf("the short form: %+v, %v", p, err)
	}
}

func TestMail_HasServersAndClientsAtEverySite(t *testing.T) {
	p, err := planMail(mailEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	top, err := p.topology()
	if err != nil {
		t.Fatal(err)
	}
	if got := top.Nodes(); got != 15 || top.GeoConfig != "keep-c1" || len(top.At("s5")) != 6 {
		t.Errorf("%d nodes, geo-config at %s, %d hosts at s5", got, top.GeoConfig, len(top.At("s5")))
	}
	if got := top.Path("s1", "s5").Delay; got != 50*time.Millisecond {
		t.Errorf("%v from one site to another", got)
	}
	for level, want := range map[int][]int{1: {1, 0, 0}, 5: {2, 2, 1}, 6: {2, 2, 2}} {
		var got []int
		for h := range p.hosts {
			got = append(got, p.clientsOf(h, level))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d clients are spread over the hosts as %v, want %v", level, got, want)
		}
	}
}

// mailServerOf is a server at s2, of a way.
func mailServerOf(w mailWay, mail string) mailServer {
	return mailServer{way: w, host: "s2-1", site: "s2", address: "10.98.1.1", sites: []string{"s1", "s2"}, dir: "/lab/s2-1", logs: "/lab/logs", mail: mail,
		users: []string{"u00001"}, elsewhere: map[string]string{"u00000": "10.98.0.1"}}
}

func TestMailServers_KeepMailboxesBelowTheCues(t *testing.T) {
	s := mailServerOf(mailWays()[1], "/lab/mnt/s2-1/mail/.EventualConsistency/.MaxTime=10000/.Site=SITE/.KeepTogether/.RepLevel=1")
	s.elsewhere = nil
	for what, c := range map[string]struct {
		text  string
		lines []string
	}{
		"exim": {s.exim(), []string{
			"  directory = /lab/mnt/s2-1/mail/.EventualConsistency/.MaxTime=10000/.Site=$domain_data/.KeepTogether/.RepLevel=1/$local_part_data/Mail",
			"domainlist sites = s1 : s2", "primary_hostname = s2-1", "deliver_drop_privilege = true", "log_file_path = /lab/logs/s2-1-smtp-mount-%s.log",
		}},
		"dovecot": {s.dovecot(), []string{
			"mail_location = maildir:/lab/mnt/s2-1/mail/.EventualConsistency/.MaxTime=10000/.Site=%d/.KeepTogether/.RepLevel=1/%n/Mail", "listen = 10.98.1.1", "    port = 1143",
		}},
	} {
		for _, line := range c.lines {
			if !slices.Contains(strings.Split(c.text, "\n"), line) {
				t.Errorf("%s lacks %q:\n%s", what, line, c.text)
			}
		}
	}
	if strings.Contains(s.exim(), "elsewhere") {
		t.Error("a server that has all mailboxes sends messages on")
	}
	if got := s.account(); got != "/lab/mnt/s2-1/mail/.Site=s2/.KeepTogether/.RepLevel=1" {
		t.Errorf("accounts are made at %s", got)
	}
}

func TestMailServers_SendOnWhereMailboxesAreDivided(t *testing.T) {
	text := mailServerOf(mailWays()[0], "/lab/s2-1/boxes").exim()
	for _, line := range []string{"  route_data = ${lookup{$local_part}lsearch{/lab/s2-1/elsewhere}}", "  port = 25", "  local_parts = lsearch;/lab/s2-1/users", "  directory = /lab/s2-1/boxes/$local_part_data/Mail"} {
		if !slices.Contains(strings.Split(text, "\n"), line) {
			t.Errorf("the configuration lacks %q:\n%s", line, text)
		}
	}
}

func TestMailServer_TellsWhichMessagesItDeferred(t *testing.T) {
	s := mailServerOf(mailWays()[1], "/lab/mail")
	s.logs = t.TempDir()
	log := "2026-11-26 23:04:07.091 1xW-30 <= load@load H=(s1) [10.98.0.4] S=16896 id=c1.9.0@load\n2026-11-26 23:04:08.091 1xW-31 <= load@load S=9 id=c1.9.1@load\n" +
		"2026-11-26 23:04:28.884 1xW-30 == u00043@s4 R=mailbox T=maildir defer (110): Connection timed out\n2026-11-26 23:04:50.772 1xW-31 => u00043 <u00043@s4> R=mailbox\n2026-11-26 23:05:00.1 End\n"
	if err := os.WriteFile(s.log("main"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.deferred(); err != nil || !slices.Equal(got, []string{"c1.9.0"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMail_JudgesWhatBecameOfEveryMessage(t *testing.T) {
	users := load.MailUsers{Sites: []string{"s1"}, Count: 3}
	sent := func(id string, user int, err string) load.MailEvent {
		return load.MailEvent{Kind: load.MailSend, ID: id, User: user, Err: err}
	}
	fetched := func(user int, removed bool, ids ...string) load.MailEvent {
		return load.MailEvent{Kind: load.MailRead, User: user, Seen: ids, Removed: removed}
	}
	good := []load.MailEvent{sent("there", 0, ""), sent("removed", 0, ""), sent("perhaps", 1, ""), sent("refused", 1, "no room"), sent("unanswered", 2, "timed out"),
		fetched(0, true, "removed"), fetched(1, false, "perhaps")}
	boxes := []load.Mailbox{{User: "u00000", IDs: []string{"there"}}, {User: "u00002", IDs: []string{"unanswered"}}}
	if k := judgeMail(users, good, nil, boxes); k.bad() != 0 || k.Acknowledged != 3 || k.Removed != 1 || k.Found != 2 || k.Returned != 0 {
		t.Errorf("all is well: %+v", k)
	}
	more := func(events ...load.MailEvent) []load.MailEvent { return append(slices.Clone(good), events...) }
	in := func(b ...load.Mailbox) []load.Mailbox { return append(slices.Clone(boxes), b...) }
	for what, c := range map[string]struct {
		events []load.MailEvent
		boxes  []load.Mailbox
		want   mailKept
	}{
		"lost":             {more(sent("x", 0, "")), boxes, mailKept{Lost: 1}},
		"in two files":     {good, in(load.Mailbox{User: "u00000", IDs: []string{"there"}}), mailKept{Twice: 1}},
		"fetched twice":    {more(sent("x", 0, ""), fetched(0, true, "x", "x")), boxes, mailKept{Twice: 1}},
		"deferred":         {more(sent("late", 0, "")), in(load.Mailbox{User: "u00000", IDs: []string{"late", "late"}}), mailKept{Again: 1}},
		"another's":        {good, in(load.Mailbox{User: "u00001", IDs: []string{"refused"}}, load.Mailbox{User: "u00002", IDs: []string{"refused"}}), mailKept{Misplaced: 1}},
		"fetched by other": {more(sent("x", 0, ""), fetched(1, true, "x")), boxes, mailKept{Misplaced: 1}},
		"not whole":        {good, in(load.Mailbox{User: "u00001", Wrong: []string{"new/1"}}), mailKept{Wrong: 1}},
		"never sent":       {good, in(load.Mailbox{User: "u00001", IDs: []string{"x"}}), mailKept{Wrong: 1}},
		"back again":       {good, in(load.Mailbox{User: "u00000", IDs: []string{"removed"}}), mailKept{Returned: 1}},
	} {
		k := judgeMail(users, c.events, map[string]bool{"late": true}, c.boxes)
		if k.Lost != c.want.Lost || k.Twice != c.want.Twice || k.Again != c.want.Again || k.Misplaced != c.want.Misplaced || k.Wrong != c.want.Wrong || k.Returned != c.want.Returned {
			t.Errorf("%s: got %+v", what, k)
		}
	}
}

func TestMailReport_ComparesTheWays(t *testing.T) {
	p := mailPlan{sites: 2, servers: 1, hosts: 1, users: load.MailUsers{Sites: []string{"s1", "s2"}, Count: 10}, rate: 1000, each: 10 * time.Second, reads: 0.1}
	round := func(level, good, took int) mailRound {
		r := mailRound{level: level, began: zero, took: 10 * time.Second, wan: wanUse{Bytes: uint64(good+1) * 5000, Packets: uint64(good+1) * 20}}
		for i := range good {
			kind := load.MailSend
			if i%10 == 9 {
				kind = load.MailRead
			}
			r.events = append(r.events, load.MailEvent{Kind: kind, At: zero.UnixMicro() + int64(i)*1000, Took: int64(took) * 1000})
		}
		late := load.MailEvent{Kind: load.MailSend, At: zero.UnixMicro() + 9_999_000, Took: 5_000_000} // ends when the round is over
		r.events = append(r.events, late, load.MailEvent{Kind: load.MailSend, At: zero.UnixMicro(), Took: 1, Err: "refused"})
		return r
	}
	probe := mailProbe{What: mailFurther, Requests: 2, Took: []float64{700, 900}, WAN: wanUse{Bytes: 20000, Packets: 60},
		Counts: []count{{Kind: "lookup", Count: 20, WAN: 4, MostWAN: 1, Out: 2000}, {Kind: "fsync", Count: 2, WAN: 2, MostWAN: 1, Out: 14000}}}
	static := mailRecord{mailWay: mailWays()[0], rounds: []mailRound{round(1, 100, 40), round(3, 200, 60)}, kept: mailKept{Acknowledged: 7}, idle: 80e3}
	mount := mailRecord{mailWay: mailWays()[1], rounds: []mailRound{round(1, 60, 50), round(3, 150, 80)}, probes: []mailProbe{probe}, deferred: 3, idle: 90e3}
	want(t, published(t, mailReport(p, []mailRecord{static, mount})),
		"| static partition | 20.0 | 3 | - | - | 80.0 | 112 | - |",
		"| Cartwheel | 15.0 | 3 | 75.0 | 90 | 90.0 | 50 | 44.6 |",
		"| static partition | 1 | 9.00 | 1.00 | 1 | 40.0 | 40.0 | 40.0 | 40.0 | 5.00 | 20.0 | 20.2 |",
		"| Cartwheel | further messages to that user | 800 | 11.0 | 3.00 | 10.0 | 30.0 | 11 |",
		"| further messages to that user | lookup | 10.0 | 2.00 | 1 | 1.00 | 0 |",
		"| Cartwheel | 0 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
		"not measured here: WheelFS")
}
