// Command bundled-temporal is the Temporal beside a hub agent: Temporal's development server, for the clients of its own Pod. Its
// database begins empty at each start, because the hub agent starts all rollouts again from their objects: no file of an older
// version is ever read, and none has to be repaired.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fleetflow/fleetflow/cmd/bundled-temporal/server"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// healthCommand asks the server of the same container whether it is well.
	healthCommand = "health"
	healthTimeout = 5 * time.Second
	// database is the name of the database's file; what SQLite keeps beside it begins with that.
	database = "temporal.db"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bundled-temporal: %v\n", err)
		os.Exit(1)
	}
}

// options say what the server listens on and where its files are.
type options struct {
	server.Options
	// program is the Temporal CLI, data the folder of the database.
	program, data string
	// address and http are where the frontend listens.
	address, http string
	ui            bool
	uiPort        string
	// asksHealth says that a server is asked, and none started.
	asksHealth bool
	// leastFree is how many bytes have to be free where the database is.
	leastFree uint64
}

func parse(args []string) (*options, error) {
	o := &options{}
	if len(args) > 0 && args[0] == healthCommand {
		o.asksHealth = true
		args = args[1:]
	}
	f := flag.NewFlagSet("bundled-temporal", flag.ContinueOnError)
	f.StringVar(&o.program, "server", "/temporal", "program of the Temporal CLI, which has the server")
	f.StringVar(&o.data, "data", "/data", "folder of the database, which is deleted at each start")
	f.StringVar(&o.Namespace, "namespace", wf.DefaultNamespace, "Temporal namespace, which is made with its search attributes")
	f.StringVar(&o.address, "address", "127.0.0.1:7233", "host:port of the frontend")
	f.StringVar(&o.http, "http-address", "127.0.0.1:7243", "host:port of the frontend by HTTP, which health asks")
	f.BoolVar(&o.ui, "ui", false, "serve the UI, too")
	f.StringVar(&o.uiPort, "ui-port", "8233", "port of the UI")
	f.Uint64Var(&o.leastFree, "least-free-bytes", 32<<20,
		"how many bytes have to be free on the disk of the folder: with less, health fails, and the server that is started then begins with an empty database")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.Host, o.Port, err = net.SplitHostPort(o.address); err != nil {
		return nil, fmt.Errorf("--address is %q; it must be host:port: %w", o.address, err)
	}
	if !net.ParseIP(o.Host).IsLoopback() {
		return nil, fmt.Errorf("--address is %q; it must be of this machine, such as 127.0.0.1:7233: the server authenticates no client", o.address)
	}
	if _, o.HTTPPort, err = net.SplitHostPort(o.http); err != nil {
		return nil, fmt.Errorf("--http-address is %q; it must be host:port: %w", o.http, err)
	}
	o.Database = filepath.Join(o.data, database)
	return o, nil
}

func run(args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.asksHealth {
		return o.askHealth()
	}
	if err := o.deleteDatabase(); err != nil {
		return err
	}
	// The server takes the place of this process, and the signals that the kubelet sends to it.
	err = syscall.Exec(o.program, append([]string{o.program}, o.arguments()...), os.Environ())
	return fmt.Errorf("starting %s: %w", o.program, err)
}

// deleteDatabase deletes what a former server of this Pod has left.
func (o *options) deleteDatabase() error {
	entries, err := os.ReadDir(o.data)
	if err != nil {
		return fmt.Errorf("reading the folder of the database: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), database) {
			continue
		}
		if err := os.Remove(filepath.Join(o.data, entry.Name())); err != nil {
			return fmt.Errorf("deleting the former database: %w", err)
		}
	}
	return nil
}

// arguments returns those of the development server.
func (o *options) arguments() []string {
	arguments := o.Arguments()
	for _, attribute := range []string{wf.PlacementAttribute, wf.RunAttribute, wf.StageAttribute, wf.PhaseAttribute} {
		arguments = append(arguments, "--search-attribute="+attribute+"=Keyword")
	}
	if o.ui {
		return append(arguments, "--ui-port="+o.uiPort, "--ui-disable-news-fetch")
	}
	return append(arguments, "--headless")
}

// askHealth returns an error if the disk of the database is full, or the server does not answer for its namespace. A server that cannot write
// still answers what it remembers.
func (o *options) askHealth() error {
	if err := o.checkDisk(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.http+"/api/v1/namespaces/"+o.Namespace, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking the server: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the server: it answers %s", response.Status)
	}
	return nil
}

// checkDisk returns an error if less is free on the disk of the database than has to be.
func (o *options) checkDisk() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(o.data, &disk); err != nil {
		return fmt.Errorf("looking at the disk of the database: %w", err)
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < o.leastFree {
		return fmt.Errorf("the disk of the database is full: %d bytes are free in %s. The server is to begin with an empty one; free the disk of the node",
			free, o.data)
	}
	return nil
}
