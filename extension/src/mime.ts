const extension = {};
export default extension;
