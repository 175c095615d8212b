/** f_type values of file systems on which SQLite's locks and shared memory cannot be trusted (linux/magic.h, statfs(2)). */
export const NETWORK_FILESYSTEMS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  20859: 'SMB',
  1702057286: 'FUSE',
  16914839: '9P',
  1397113167: 'AFS',
  12805120: 'Ceph',
  1196443219: 'GPFS',
  198183888: 'Lustre',
  428016422: 'BeeGFS',
  2866260714: 'PanFS',
  18225520: 'GFS2',
  1952539503: 'OCFS2',
  1937076805: 'Coda',
  2020557398: 'a folder shared by VirtualBox',
};
