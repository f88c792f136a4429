// Package charts has the charts of the agents, for programs that install them.
package charts

import "embed"

//go:generate go run ./internal/valuetables

// MemberAgent is the chart of the member agent, in the folder MemberAgentFolder.
//
//go:embed all:member-agent
var MemberAgent embed.FS

// HubAgent is the chart of the hub agent, in the folder HubAgentFolder. The definitions of the hub's kinds are in its folder crds.
//
//go:embed all:hub-agent
var HubAgent embed.FS

// HubAgentFolder is where the chart is in HubAgent.
const HubAgentFolder = "hub-agent"

// MemberAgentFolder is where the chart is in MemberAgent.
const MemberAgentFolder = "member-agent"
