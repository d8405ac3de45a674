package experiments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
)

// Where Debian has httpd and its modules.
const (
	httpdProgram = "/usr/sbin/apache2"
	httpdModules = "/usr/lib/apache2/modules"
)

// httpdNeeds says what is missing for running httpd, with the remedy.
func httpdNeeds() error {
	const op fault.Op = "experiments.httpdNeeds"
	for _, name := range []string{httpdProgram, filepath.Join(httpdModules, "mod_cache_disk.so"), "gcc"} {
		if _, err := exec.LookPath(name); err != nil && !exists(name) {
			return fault.E(fault.NotFound, op, name, "is missing, which this experiment needs: as root, run scripts/setup test (Debian's packages apache2-bin and gcc)")
		}
	}
	return nil
}

// exists tells whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// httpdOptions are one caching proxy.
type httpdOptions struct {
	host   string // of the lab
	listen string // HOST:PORT
	dir    string // what it keeps for itself, on a local disk
	cache  string // its disk cache
	age    time.Duration
}

// config is httpd's configuration file: a forward proxy with a disk cache.
// It copies files itself, because sendfile and mmap trust a local disk's files
// not to change.
func (o httpdOptions) config() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ServerName %s", o.host)
	line("ServerRoot %q", o.dir)
	line("DefaultRuntimeDir %q", o.dir)
	line("PidFile %q", filepath.Join(o.dir, "httpd.pid"))
	line("ErrorLog /dev/stderr")
	line("LogLevel warn")
	line("Listen %s", o.listen)
	line("User www-data\nGroup www-data")
	for _, m := range []string{"mpm_event", "authz_core", "proxy", "proxy_http", "cache", "cache_disk"} {
		line("LoadModule %s_module %s", m, filepath.Join(httpdModules, "mod_"+m+".so"))
	}
	line("StartServers 1\nServerLimit 1\nThreadsPerChild 32\nMaxRequestWorkers 32\nMinSpareThreads 1\nMaxSpareThreads 32")
	line("EnableSendfile Off\nEnableMMAP Off")
	line("ProxyRequests On\nProxyTimeout %d", int(httpdPatience.Seconds()))
	line("CacheEnable disk http://")
	line("CacheRoot %q", o.cache)
	line("CacheDirLevels 1\nCacheDirLength 1")
	line("CacheHeader On\nCacheIgnoreNoLastMod On\nCacheDefaultExpire %d", int(o.age.Seconds()))
	line("CacheLock On\nCacheLockPath %q\nCacheLockMaxAge %d", filepath.Join(o.dir, "locks"), int(httpdPatience.Seconds()))
	return b.String()
}

// httpdFolders are the names of the folders that httpd keeps pages in, with one
// level of one letter (CacheDirLevels, CacheDirLength).
const httpdFolders = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@"

// httpdPatience is how long a proxy waits for the origin, and for another request
// of its own that fetches the same page.
const httpdPatience = 15 * time.Second

// oneDevice makes fstat tell the same device for all files. httpd 2.4 notes in a
// page's header file the device and the inode of its body, and takes a page only
// where both are the same. Each mount is a device of its own to the kernel, so a
// proxy would take what it wrote itself and nothing else.
const oneDevice = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
typedef int (*stat_of)(int, struct stat *);
static int tell(const char *name, int fd, struct stat *st) {
	int r = ((stat_of)dlsym(RTLD_NEXT, name))(fd, st);
	if (r == 0) st->st_dev = 1;
	return r;
}
int fstat(int fd, struct stat *st) { return tell("fstat", fd, st); }
int fstat64(int fd, struct stat64 *st) { return tell("fstat64", fd, (struct stat *)st); }
`

// buildOneDevice compiles oneDevice, and returns the library's path.
func buildOneDevice(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "one-device.so")
	cmd := exec.CommandContext(ctx, "gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", path, "-", "-ldl")
	cmd.Stdin = strings.NewReader(oneDevice)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fault.Errorf(fault.Other, "experiments.buildOneDevice", path, "gcc failed: %v: %s", err, out)
	}
	return path, nil
}

// httpd starts a proxy in a host, with a library loaded before its own.
func (b *bed) httpd(ctx context.Context, o httpdOptions, preload string) (*supervisor.Child, error) {
	const op fault.Op = "experiments.httpd"
	if err := os.MkdirAll(filepath.Join(o.dir, "locks"), 0o755); err != nil {
		return nil, fault.FromOS(op, o.dir, err)
	}
	if err := os.Chmod(filepath.Join(o.dir, "locks"), 0o777); err != nil { // for www-data
		return nil, fault.FromOS(op, o.dir, err)
	}
	file := filepath.Join(o.dir, "httpd.conf")
	if err := os.WriteFile(file, []byte(o.config()), 0o644); err != nil {
		return nil, fault.FromOS(op, file, err)
	}
	// Its children outlive it where they wait for a mount, until the lab ends: they
	// are not to keep its output open. It starts another one where one crashes.
	cmd := b.Command(context.WithoutCancel(ctx), o.host, "/bin/sh", "-c", `exec "$0" -f "$1" -D FOREGROUND >/dev/null`, httpdProgram, file)
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+preload)
	return b.spawn(cmd, o.host, "httpd")
}
