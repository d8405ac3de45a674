package experiments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// Where Debian has the mail servers, and as which user they use mailboxes.
const (
	eximProgram    = "/usr/sbin/exim4"
	dovecotProgram = "/usr/sbin/dovecot"
	tcpProgram     = "/usr/bin/tcpserver" // takes the connections of SMTP
	mailOwner      = "Debian-exim"
)

// mailNeeds says what is missing for running the mail servers, with the remedy.
func mailNeeds() error {
	for _, name := range []string{eximProgram, dovecotProgram, "/usr/lib/dovecot/imap", tcpProgram} {
		if _, err := exec.LookPath(name); err != nil {
			return fault.E(fault.NotFound, "experiments.mailNeeds", name, "is missing, which this experiment needs: as root, run scripts/setup test (Debian's packages exim4-daemon-light, dovecot-imapd and ucspi-tcp)")
		}
	}
	return nil
}

// mailUser returns the numbers of the user and the group that own mailboxes.
func mailUser() (uid, gid int, err error) {
	u, err := user.Lookup(mailOwner)
	if err != nil {
		return 0, 0, fault.Wrap(fault.NotFound, "experiments.mailUser", mailOwner, err)
	}
	uid, err = strconv.Atoi(u.Uid)
	if err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, fault.Wrap(fault.Other, "experiments.mailUser", mailOwner, err)
}

// mailServer is one host's SMTP and IMAP server.
type mailServer struct {
	way     mailWay
	host    string // of the lab
	number  int    // of the site's servers
	site    string
	address string
	sites   []string
	dir     string // what they keep for themselves, on a local disk
	logs    string // folder of the lab's logs
	mail    string // the folder of the users' folders; SITE stands for the user's site
	users   []string
	// elsewhere are the addresses of the servers of users that are not here.
	elsewhere map[string]string
}

func (s mailServer) path(name string) string { return filepath.Join(s.dir, name) }

// place is a user's folder, in words of a server's configuration.
func (s mailServer) place(site, user string) string {
	return filepath.Join(strings.ReplaceAll(s.mail, mailSite, site), user)
}

// log is the SMTP server's log of a kind, with those of the lab.
func (s mailServer) log(kind string) string {
	return filepath.Join(s.logs, fmt.Sprintf("%s-smtp-%s-%s.log", s.host, s.way.key, kind))
}

// account is the folder in which the site's accounts are made. Making one is no
// matter of eventual consistency: what is made next must see it.
func (s mailServer) account() string {
	var out []string
	for _, part := range strings.Split(s.place(s.site, ""), "/") {
		if part != ".EventualConsistency" && !strings.HasPrefix(part, ".MaxTime=") {
			out = append(out, part)
		}
	}
	return strings.Join(out, "/")
}

// exim is the configuration of the SMTP server. It delivers a message before it
// answers for it, by the option -odf. A message that it could not deliver is kept
// on the local disk, for mailServer.flush.
func (s mailServer) exim() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("primary_hostname = %s", s.host)
	line("exim_user = %s\nexim_group = %s\ndeliver_drop_privilege = true", mailOwner, mailOwner)
	line("spool_directory = %s\nlog_file_path = %s", s.path("spool"), s.log("%s"))
	line("log_selector = +millisec +deliver_time")
	line("keep_environment =\nhost_lookup =\nrfc1413_query_timeout = 0s\ntls_advertise_hosts =\ndisable_ipv6 = true")
	line("smtp_accept_queue_per_connection = 0\nsmtp_accept_max_per_connection = 0")
	line("acl_smtp_rcpt = accept\nacl_smtp_data = accept")
	line("domainlist sites = %s", strings.Join(s.sites, " : "))
	line("begin routers")
	line("mailbox:\n  driver = accept\n  domains = +sites\n  local_parts = lsearch;%s\n  transport = maildir", s.path("users"))
	if len(s.elsewhere) > 0 {
		line("elsewhere:\n  driver = manualroute\n  domains = +sites\n  route_data = ${lookup{$local_part}lsearch{%s}}\n  transport = server\n  self = send", s.path("elsewhere"))
	}
	line("begin transports")
	line("maildir:\n  driver = appendfile\n  directory = %s\n  maildir_format", filepath.Join(s.place("$domain_data", "$local_part_data"), "Mail"))
	line("server:\n  driver = smtp\n  port = %d\n  hosts_avoid_tls = *", s.way.smtp)
	line("begin retry\n* * F,1h,1s")
	return b.String()
}

// dovecot is the configuration of the IMAP server.
func (s mailServer) dovecot() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("instance_name = %s\nbase_dir = %s\nstate_dir = %s", s.host, s.path("run"), s.path("state"))
	line("protocols = imap\nlisten = %s\nssl = no\ndisable_plaintext_auth = no\nlog_path = /dev/stderr", s.address)
	line("mail_uid = %s\nmail_gid = %s\nfirst_valid_uid = 1\nfirst_valid_gid = 1", mailOwner, mailOwner)
	line("mail_location = maildir:%s", filepath.Join(s.place("%d", "%n"), "Mail"))
	line("mmap_disable = yes")
	line("passdb {\n  driver = static\n  args = nopassword=y\n}")
	line("userdb {\n  driver = static\n  args = uid=%s gid=%s home=%s\n}", mailOwner, mailOwner, s.place("%d", "%n"))
	line("default_process_limit = 100\nservice auth {\n  client_limit = 2000\n}")
	line("service imap {\n  process_limit = 200\n  service_count = 100\n}")
	line("service imap-login {\n  chroot =\n  service_count = 0\n  inet_listener imap {\n    port = %d\n  }\n  inet_listener imaps {\n    port = 0\n  }\n}", s.way.imap)
	line("service anvil {\n  chroot =\n}")
	return b.String()
}

// prepare writes what the servers read.
func (s mailServer) prepare(uid, gid int) error {
	const op fault.Op = "experiments.prepare"
	if err := os.MkdirAll(s.path("spool"), 0o755); err != nil {
		return fault.FromOS(op, s.dir, err)
	}
	for _, at := range []string{s.dir, s.path("spool")} {
		if err := os.Chown(at, uid, gid); err != nil {
			return fault.FromOS(op, at, err)
		}
	}
	var here, elsewhere strings.Builder
	for _, u := range s.users {
		fmt.Fprintf(&here, "%s: %s\n", u, u)
	}
	for u, address := range s.elsewhere {
		fmt.Fprintf(&elsewhere, "%s: %s\n", u, address)
	}
	for name, text := range map[string]string{"users": here.String(), "elsewhere": elsewhere.String(), "exim.conf": s.exim(), "dovecot.conf": s.dovecot()} {
		if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
			return fault.FromOS(op, s.path(name), err)
		}
	}
	return nil
}

// start starts both servers.
func (s mailServer) start(ctx context.Context, b *bed) error {
	smtp := []string{tcpProgram, "-R", "-H", "-l", s.host, "-c", "500", s.address, strconv.Itoa(s.way.smtp), eximProgram, "-C", s.path("exim.conf"), "-bs", "-odf"}
	for name, argv := range map[string][]string{"smtp-" + s.way.key: smtp, "imap-" + s.way.key: {dovecotProgram, "-F", "-c", s.path("dovecot.conf")}} {
		if _, err := b.spawn(b.Command(context.WithoutCancel(ctx), s.host, argv...), s.host, name); err != nil {
			return err
		}
	}
	return nil
}

// flush has the SMTP server deliver what it could not, and returns how much is
// left.
func (s mailServer) flush(ctx context.Context, b *bed) (left int, err error) {
	if _, err := b.Run(ctx, s.host, eximProgram, "-C", s.path("exim.conf"), "-qf"); err != nil {
		return 0, err
	}
	out, err := b.Run(ctx, s.host, eximProgram, "-C", s.path("exim.conf"), "-bpc")
	if err != nil {
		return 0, err
	}
	left, err = strconv.Atoi(strings.TrimSpace(string(out)))
	return left, fault.Wrap(fault.Other, "experiments.flush", s.host, err)
}

// deferred returns the IDs of messages that could not be delivered at once, by the
// server's log. A line has the time, the server's own ID of a message, and <= where
// it came in, == where it was deferred.
func (s mailServer) deferred() (out []string, err error) {
	text, err := os.ReadFile(s.log("main"))
	if err != nil {
		return nil, fault.FromOS("experiments.deferred", s.log("main"), err)
	}
	ids := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		switch own := words[2]; words[3] {
		case "<=":
			for _, w := range words[4:] {
				if id, ok := strings.CutPrefix(w, "id="); ok {
					ids[own], _, _ = strings.Cut(id, "@")
				}
			}
		case "==":
			out = append(out, ids[own])
		}
	}
	return out, nil
}
