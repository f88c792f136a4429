package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// statusTimeout bounds the question to the hub: status must answer while the hub's API server is down.
const statusTimeout = 3 * time.Second

// report is what "status" prints.
type report struct {
	Dir        string                    `json:"dir"`
	Kubeconfig string                    `json:"kubeconfig"`
	Temporal   string                    `json:"temporal"`
	TemporalUI string                    `json:"temporalUI"`
	Dashboard  string                    `json:"dashboard,omitempty"`
	Prometheus string                    `json:"prometheus,omitempty"`
	Components []control.Component       `json:"components"`
	Members    []controlplane.Membership `json:"members,omitempty"`
	// MembersError says why the members are not listed.
	MembersError string `json:"membersError,omitempty"`
}

func statusCommand(dir *fleetDir) *cobra.Command {
	format := "table"
	cmd := &cobra.Command{
		Use: "status", Short: "Show every component and whether the members have joined", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return fmt.Errorf("-o %s is not known: table or json", format)
			}
			r, err := collect(cmd.Context(), dir.path)
			if err != nil {
				return err
			}
			if format == "json" {
				encoder := json.NewEncoder(os.Stdout)
				encoder.SetIndent("", "  ")
				return encoder.Encode(r)
			}
			return printReport(os.Stdout, r, time.Now())
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "table or json")
	return cmd
}

func collect(ctx context.Context, dir string) (*report, error) {
	client, err := control.Dial(dir)
	if err != nil {
		return nil, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor: %w", err)
	}
	fleet, err := state.Load(dir)
	if err != nil {
		return nil, err
	}
	r := &report{
		Dir: dir, Kubeconfig: fleet.Kubeconfig(), Temporal: fleet.Address("temporal"),
		TemporalUI: fleet.TemporalUI(), Dashboard: fleet.DashboardLink(), Components: status.Components,
	}
	if fleet.Prometheus {
		r.Prometheus = fleet.PrometheusURL()
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	hub, err := controlplane.Client(fleet, state.Hub)
	if err == nil {
		r.Members, err = controlplane.Memberships(ctx, hub, fleet)
	}
	if err != nil {
		r.MembersError = err.Error()
	}
	return r, nil
}

func printReport(out io.Writer, r *report, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tSTATE\tPID\tUPTIME\tRESTARTS\tMEMORY\tREASON")
	total := int64(0)
	for _, c := range r.Components {
		pid := "-"
		uptime := "-"
		if c.PID != 0 {
			pid = fmt.Sprint(c.PID)
			uptime = progress.Elapsed(now.Sub(c.Started))
		}
		total += c.Memory
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", c.Name, c.State, pid, uptime, c.Restarts, memory(c.Memory), c.Reason)
	}
	fmt.Fprintf(table, "total\t\t\t\t\t%s\t\n", memory(total))
	fmt.Fprintln(table)
	if r.MembersError != "" {
		fmt.Fprintf(table, "Members are not known: %s\n", r.MembersError)
	} else {
		fmt.Fprintln(table, "MEMBER\tJOINED\tHEALTHY\tHEARTBEAT")
	}
	for _, m := range r.Members {
		heartbeat := "never"
		if !m.Heartbeat.IsZero() {
			heartbeat = progress.Elapsed(now.Sub(m.Heartbeat)) + " ago"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, m.Joined, m.Healthy, heartbeat)
	}
	fmt.Fprintf(table, "\nkubeconfig\t%s\ntemporal\t%s, UI %s\n", r.Kubeconfig, r.Temporal, r.TemporalUI)
	if r.Dashboard != "" {
		fmt.Fprintf(table, "dashboard\t%s\n", r.Dashboard)
	}
	if r.Prometheus != "" {
		fmt.Fprintf(table, "prometheus\t%s\n", r.Prometheus)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	return nil
}

// memory writes a number of bytes in MiB.
func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20)
}
