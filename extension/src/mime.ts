import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
// The drawing module is plain JavaScript, shared with saved reports.
import { draw } from '../../tileworkbench/views/document.js';

const MIME = 'application/vnd.tileworkbench.v1+json';

class Renderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    draw(this.node, model.data[MIME], { leave: () => this.leave() });
  }

  /** Gives the focus back to what holds the output: the cell, so that the notebook's own keys work again. */
  private leave(): void {
    const holder = this.node.parentElement?.closest<HTMLElement>('.jp-Cell, [tabindex]');
    if (holder) {
      holder.focus();
    } else if (document.activeElement instanceof HTMLElement) {
      document.activeElement.blur();
    }
  }
}

const extension: IRenderMime.IExtension = {
  id: 'tileworkbench:mime',
  description: 'Draws tileworkbench records',
  rendererFactory: {
    // Safe: the renderer evaluates nothing of the record and makes text nodes only, so untrusted notebooks are drawn too.
    safe: true,
    mimeTypes: [MIME],
    createRenderer: () => new Renderer()
  },
  rank: 0,
  dataType: 'json',
  fileTypes: [{ name: 'tileworkbench', displayName: 'tileworkbench record', mimeTypes: [MIME], extensions: ['.twb.json'] }],
  documentWidgetFactoryOptions: {
    name: 'tileworkbench',
    primaryFileType: 'tileworkbench',
    fileTypes: ['tileworkbench'],
    defaultFor: ['tileworkbench']
  }
};

export default extension;
