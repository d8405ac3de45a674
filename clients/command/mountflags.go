package command

import "time"

// clusterFlags say how the cluster is reached, and for how long it is waited for.
type clusterFlags struct {
	Site      string        `help:"Site where this machine stands." env:"CARTWHEEL_SITE"`
	UserKey   string        `help:"File of the user's key, where the contact file names none." type:"path" env:"CARTWHEEL_USER_KEY"`
	CacheDir  string        `help:"Keep chunks and unsent writes here; one process for each directory. Without it, what .SyncLevel=0 does not wait for is in memory only." type:"path" env:"CARTWHEEL_CACHE_DIR"`
	CacheSize int64         `help:"Bytes that the cache directory may hold." default:"10737418240"`
	Memory    int64         `help:"Bytes of memory to stay under: caches are sized by it, and the kernel is asked to forget files beyond it." default:"314572800"`
	OpTimeout time.Duration `help:"How long an operation may look for a node that answers." default:"60s"`
	Soft      bool          `help:"Give up a write that the nodes did not take within --op-timeout; otherwise the mount sends it until they do."`
	FlushWait time.Duration `name:"flush-timeout" help:"How long an unmount continues while no unsent data gets to the nodes." default:"60s"`
}

// kernelFlags are what the kernel is told of the mount.
type kernelFlags struct {
	AllowOther bool   `help:"Let other users in; root's mounts always do."`
	ReadOnly   bool   `help:"Refuse every change."`
	NoExec     bool   `help:"Refuse to run programs from the mount."`
	Suid       bool   `help:"Honour set-id bits (root)."`
	Dev        bool   `help:"Honour device files (root)."`
	FSName     string `name:"fsname" help:"First column of df." default:"cartwheel"`
	Background int    `name:"max-background" help:"Requests of the kernel's own, such as read-ahead, in flight at once, from which on it reads nothing ahead." default:"64"`
	Ahead      int    `name:"kernel-read-ahead" help:"Bytes that the kernel reads ahead." default:"1048576"`
}

// daemonFlags are of a mount in the background.
type daemonFlags struct {
	Daemon     bool          `help:"Run in the background; returns when the mount is ready."`
	DaemonWait time.Duration `name:"daemon-timeout" help:"How long the first answer of a node may take." default:"30s"`
	PIDFile    string        `name:"pid-file" help:"Write the process's number here while it is mounted." type:"path"`
	LogFile    string        `name:"log-file" help:"Log file of a mount in the background (default: beside its record)." type:"path"`
}

// bootFlags are for a mount that the machine starts.
type bootFlags struct {
	PrintUnit bool   `help:"Print what starts this mount at boot (systemd units; a launchd job on macOS), and do nothing."`
	Fstab     bool   `name:"update-fstab" help:"Write this mount into /etc/fstab, link /sbin/mount.cartwheel to this program, and mount."`
	FstabFile string `name:"fstab" hidden:"" default:"/etc/fstab" type:"path"`
	Helper    string `name:"mount-helper" hidden:"" default:"/sbin/mount.cartwheel" type:"path"`
}
