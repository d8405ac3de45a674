package command

import (
	"io"
	"path/filepath"
	"strings"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
)

type clusterUnitCmd struct {
	Process string   `arg:"" enum:"node,geo-config" help:"What it starts: node or geo-config."`
	Dir     string   `type:"path" placeholder:"DIR" help:"Write the unit into this directory, such as /etc/systemd/system; without it the unit is printed."`
	Program string   `default:"/usr/local/bin/cartwheeld" help:"Where cartwheeld is installed."`
	User    string   `default:"cartwheel" help:"System user that runs it and owns its files."`
	Etc     string   `default:"/etc/cartwheel" type:"path" help:"Directory for configuration and keys."`
	Data    string   `default:"/var/lib/cartwheel" type:"path" help:"Directory for data."`
	Listen  []string `default:"/ip4/0.0.0.0/tcp/7300" sep:"none" help:"Where geo-config listens."`
	// The server opens the database; this command does not.
	DatabaseFile string `type:"path" placeholder:"FILE" help:"File with the URL of geo-config's database."`
}

// Help shows how it is called.
func (clusterUnitCmd) Help() string {
	return help(`cartwheel cluster unit node --dir /etc/systemd/system

Then: systemctl daemon-reload && systemctl enable --now cartwheel-node. A unit that is there is replaced.`)
}

// Run prints or writes the unit.
func (c clusterUnitCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	for _, word := range append([]string{c.Program, c.User, c.Etc, c.Data, c.DatabaseFile}, c.Listen...) {
		if strings.ContainsAny(word, " \t\n\"'\\%$") {
			return fault.E(fault.Usage, op, word, "has a character that means something to systemd: use another path")
		}
	}
	text := c.unit()
	if c.Dir == "" {
		_, err := io.WriteString(e.stdio.Out, text)
		return err
	}
	path := filepath.Join(c.Dir, "cartwheel-"+c.Process+".service")
	if err := contact.WriteFile(path, []byte(text)); err != nil {
		return fault.FromOS(op, path, err)
	}
	return e.done(map[string]string{"unit": path}, "%s is written; next: systemctl daemon-reload && systemctl enable --now cartwheel-%s", path, c.Process)
}

// unit is the text of the unit.
func (c clusterUnitCmd) unit() string {
	what, after, writes := "storage node", " cartwheel-geo-config.service", c.Data
	words := []string{c.Program, "node", "--config", filepath.Join(c.Etc, "node.yaml")}
	if c.Process == "geo-config" {
		what, after, writes = "configuration store", "", filepath.Join(c.Data, "geo-config")
		words = []string{c.Program, "geo-config", "--data", writes}
		for _, l := range c.Listen {
			words = append(words, "--listen", l)
		}
		if c.DatabaseFile != "" {
			words = append(words, "--database-file", c.DatabaseFile)
		}
	}
	return strings.NewReplacer("{WHAT}", what, "{AFTER}", after, "{USER}", c.User, "{COMMAND}", strings.Join(words, " "), "{WRITES}", writes).Replace(serviceUnit)
}

// serviceUnit is a unit. A process that ends with status 6 or 9 has another
// cluster's data or a damaged disk: starting it again helps nobody.
const serviceUnit = `[Unit]
Description=Cartwheel {WHAT}
Wants=network-online.target
After=network-online.target{AFTER}

[Service]
Type=notify
User={USER}
ExecStart={COMMAND}
TimerSlackNSec=1ms
LimitNOFILE=65536
TimeoutStartSec=120
TimeoutStopSec=60
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=6 9
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ReadWritePaths={WRITES}
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictSUIDSGID=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
`
