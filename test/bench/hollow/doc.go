// Package hollow plays the members of a fleet: to the hub they look like clusters that have joined and are healthy, and
// that apply what they are told to, but there is nothing behind them. One process plays thousands. It watches all Works
// at once and writes one status for each generation of a Work, it answers questions by the code of the member agent, and it reports for
// each member now and then, as the members' agents do. The hub's API server, Temporal and the hub agent are the real ones.
package hollow
